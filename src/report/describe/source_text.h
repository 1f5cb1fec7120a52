// The text of a line of the user's code, where its file is there and as it was.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "analysis/line_text.h"
#include "trace/tables.h"

namespace gpumemprof {

/// Reads files that frames name. Only Python files that are regular, of at most kMostSourceBytes,
/// and not changed since the program began are looked at; of others, and of lines that are not
/// there, the text is empty. Not thread-safe.
class SourceText {
 public:
  static constexpr size_t kMostSourceBytes = 4 << 20;

  /// `unchanged_since_us`: microseconds since 1970.
  explicit SourceText(int64_t unchanged_since_us) : unchanged_since_us_(unchanged_since_us) {}

  /// Without blanks around it, and cut where it is long; not printable as it is.
  std::string line(const std::string& file, uint32_t number);
  /// Lines [first, first + count) as they are, fewer where the file ends; from 1 on.
  std::vector<std::string> lines(const std::string& file, uint32_t first, uint32_t count);

 private:
  const std::vector<std::string>& lines_of(const std::string& file);

  int64_t unchanged_since_us_;
  std::unordered_map<std::string, std::vector<std::string>> files_;
};

/// The text of what a process ran. Null where it ran on another machine, which may have another
/// file by that name, or nobody knows when.
std::shared_ptr<SourceText> source_text_of(const Process& process);
/// Of any process; the tables that they are in must stay.
LineText line_text();

}  // namespace gpumemprof
