// A .gmp file in its current state, including what is in the arena and not yet in the file.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/file.h"
#include "recording/arena.h"

namespace gpumemprof {

/// Where a file's changing pages are.
enum class Holding {
  kNobody,  ///< the file has everything
  kSeen,    ///< the arena, and it is read here
  /// An arena that cannot be read here: another machine's or user's, a copy of the file, or all its
  /// keepers were killed. The end of the recording may be missing, and nobody may claim places in
  /// it while its program lives.
  kUnseen
};

/// Reads use the arena for pieces that are there, otherwise the file. If the process is gone and
/// its holder has written everything, later reads find the file.
class RecordingFile final : public File {
 public:
  /// For a file that is open, as by a FilePool. Errors: that of `file`.
  static Result<std::unique_ptr<RecordingFile>> open(Result<std::unique_ptr<File>> file);
  /// Like open_file(). Errors: the same.
  static Result<std::unique_ptr<RecordingFile>> open(const std::string& path, FileMode mode) {
    return open(open_file(path, mode));
  }

  Holding holding();

  const std::string& path() const override { return file_->path(); }
  Result<uint64_t> size() override;
  Result<size_t> read_at(uint64_t offset, void* data, size_t size) override;
  Status write_at(uint64_t offset, const void* data, size_t size) override {
    return file_->write_at(offset, data, size);
  }
  uint64_t next_data(uint64_t offset, uint64_t file_size) override;
  Result<uint64_t> punch(uint64_t offset, uint64_t length) override {
    return file_->punch(offset, length);
  }
  Result<uint64_t> add_at(uint64_t offset, uint64_t amount) override;
  Status sync() override { return file_->sync(); }
  bool lock(bool exclusive) override { return file_->lock(exclusive); }
  void unlock() override { file_->unlock(); }
  FileIdentity identity() override { return file_->identity(); }

 private:
  explicit RecordingFile(std::unique_ptr<File> file) : file_(std::move(file)) {}
  void look_for_arena();
  void look_for_stages();
  bool is_overlaid();

  std::unique_ptr<File> file_;
  std::shared_ptr<Arena> arena_;    // null: the file alone
  uint64_t place_ = 0;              // of the process
  std::vector<ArenaPiece> pieces_;  // by file offset
};

}  // namespace gpumemprof
