// A stored copy of what the page read of a run, so that the next opening need not read it again.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "page/file.h"
#include "page/whole_run.h"

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

/// Changes whenever the files do: their paths, inodes, sizes, times and samples of their content;
/// also with another build of this command, or another working directory, because paths are shown
/// relative to it. Empty if there can be no index: for a recording that still grows, replaced
/// names, and unreadable files.
/// `reader`: the file of the code that reads them.
std::string index_key(const std::vector<std::string>& paths, const PageReading& reading = {},
                      const std::string& reader = "/proc/self/exe");

/// Differs as soon as one of these files is longer or newer; empty if one cannot be examined.
/// Cheap: reads none of them.
std::string files_stamp(const std::vector<std::string>& paths);
/// A program still writes a recording among them.
bool is_written(const std::vector<std::string>& paths);

/// The possible places of these files' index, best first: beside them, and in the user's cache
/// folder. For several paths only the cache.
std::vector<std::string> index_places(const std::vector<std::string>& paths);

/// Where something of this kind that was made of the files is kept in the user's cache folder;
/// empty if there is none.
std::string in_cache(const std::vector<std::string>& paths, std::string_view kind);

inline constexpr const char* kIndexSuffix = ".page-index";

}  // namespace gpumemprof
