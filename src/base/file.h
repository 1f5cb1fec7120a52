// A file that is read and written at offsets. An interface, so that a test can make any call fail.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>

#include "base/error.h"

namespace gpumemprof {

/// Which file it is, whatever its path.
struct FileIdentity {
  uint64_t device = 0, inode = 0;
  bool operator==(const FileIdentity&) const = default;
};

/// Errors are kSystem (or kNotFound from open_file) and name the file.
class File {
 public:
  virtual ~File() = default;
  virtual const std::string& path() const = 0;
  virtual Result<uint64_t> size() = 0;
  /// Fewer bytes than asked for only at the end of the file.
  virtual Result<size_t> read_at(uint64_t offset, void* data, size_t size) = 0;
  virtual Status write_at(uint64_t offset, const void* data, size_t size) = 0;
  /// The first offset at or after `offset` that may hold other than zeros; the file's size where
  /// there is none.
  virtual uint64_t next_data(uint64_t offset, uint64_t file_size) = 0;
  /// Gives the blocks of a range back; it reads as zeros then. Bytes given back, 0 where the file
  /// system cannot.
  virtual Result<uint64_t> punch(uint64_t offset, uint64_t length) = 0;
  /// Adds to the 8 aligned bytes at `offset` of the first page, atomically with every process that
  /// maps the file. The value before.
  virtual Result<uint64_t> add_at(uint64_t offset, uint64_t amount) = 0;
  /// Everything written so far is on the disk when it returns (fdatasync).
  virtual Status sync() { return {}; }
  /// Without waiting. True where the lock is held now; it ends with the object or unlock().
  virtual bool lock(bool exclusive) = 0;
  virtual void unlock() = 0;
  virtual FileIdentity identity() { return {}; }
};

enum class FileMode { kRead, kReadWrite, kCreate };

/// Never a FIFO, a device or a socket: those would block. kCreate makes a new file of mode 0600.
Result<std::unique_ptr<File>> open_file(const std::string& path, FileMode mode);

/// Makes a rename in `folder` last over a loss of power; failure is of no consequence but then.
void sync_folder_of(const std::string& path);

/// The whole of a small file; kBadInput where it is larger than `limit`.
Result<std::string> read_small_file(const std::string& path, size_t limit);

}  // namespace gpumemprof
