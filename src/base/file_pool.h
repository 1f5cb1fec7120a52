// Files that are open while they are used: more of them than there may be descriptors.
#pragma once

#include <list>
#include <memory>
#include <string>

#include "base/file.h"

namespace gpumemprof {

/// Opens a file when it is used and closes the one that was not for longest when there are too
/// many. A file that is locked for writing stays open; the lock of a reader ends where its file is
/// closed. A file that another one took the place of meanwhile is an error, never that other file.
/// The files are of the pool's thread and must end before it.
class FilePool {
 public:
  /// At most a quarter of the descriptors that the process may have.
  FilePool();
  explicit FilePool(size_t most_open) : most_open_(most_open) {}
  FilePool(const FilePool&) = delete;
  /// Errors: those of open_file().
  Result<std::unique_ptr<File>> open(const std::string& path, FileMode mode);

 private:
  class PooledFile;
  Status begin_use(PooledFile* file);
  bool close_one();

  size_t most_open_;
  std::list<PooledFile*> open_;  // the one used last first
};

}  // namespace gpumemprof
