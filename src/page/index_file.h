// A stored copy of what the page read of a run, so that the next opening need not read it again.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "page/file.h"

namespace gpumemprof {

/// Nothing depends on an index: if anything in it is wrong, the run is read.
class PageIndex {
 public:
  /// Null if there is none with this key; `why`: one line about an existing one that could not be
  /// used.
  static std::unique_ptr<PageFile> read(const std::string& path, const std::string& key,
                                        std::string* why);
  /// Written completely or not at all, readable only by its owner. Errors: those of the file.
  static Status write(const PageFile& file, const std::string& path, const std::string& key);

  /// Smaller runs are reread quickly.
  static constexpr uint64_t kLeastMoments = 200'000;
  static bool is_worth_it(const PageFile& file);
  /// Beside the run, otherwise in the cache; nowhere if neither can be written.
  static void leave(const PageFile& file, const std::vector<std::string>& paths,
                    const std::string& key);

 private:
  template <class Archive>
  static void archive(Archive& archive, PageFile& file);
  static bool read_tables(class IndexReader& reader, Tables* tables);
  static bool take(PageFile* file);
};

}  // namespace gpumemprof
