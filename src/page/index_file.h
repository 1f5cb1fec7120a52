// What the page read of a run, kept, so that the next opening need not read the run again.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "page/file.h"

namespace gpumemprof {

/// An index is nothing that anybody relies on: what is wrong with it is a reason to read the run.
class PageIndex {
 public:
  /// Null where there is none of this key; `why`: of one that is there and is of no use, one line.
  static std::unique_ptr<PageFile> read(const std::string& path, const std::string& key,
                                        std::string* why);
  /// Whole or not at all, readable by its owner alone. Errors: those of the file.
  static Status write(const PageFile& file, const std::string& path, const std::string& key);

  /// What is below this is read again in no time.
  static constexpr uint64_t kLeastMoments = 200'000;
  static bool is_worth_it(const PageFile& file);
  /// Beside the run, else in the cache; nothing where neither can be written.
  static void leave(const PageFile& file, const std::vector<std::string>& paths,
                    const std::string& key);

 private:
  template <class Archive>
  static void archive(Archive& archive, PageFile& file);
  static bool read_tables(class IndexReader& reader, Tables* tables);
  static bool take(PageFile* file);
};

}  // namespace gpumemprof
