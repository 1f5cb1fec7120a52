#include "base/file_pool.h"

#include <errno.h>

#include <algorithm>

#include "base/descriptor.h"

namespace gpumemprof {

class FilePool::PooledFile final : public File {
 public:
  PooledFile(FilePool* pool, std::string path, FileMode mode)
      : pool_(pool), path_(std::move(path)), mode_(mode) {}
  ~PooledFile() override {
    if (file_) pool_->open_.erase(place_);
  }
  const std::string& path() const override { return path_; }
  Result<uint64_t> size() override {
    return used([](File& file) { return file.size(); });
  }
  Result<size_t> read_at(uint64_t offset, void* data, size_t size) override {
    return used([&](File& file) { return file.read_at(offset, data, size); });
  }
  Status write_at(uint64_t offset, const void* data, size_t size) override {
    return used([&](File& file) { return file.write_at(offset, data, size); });
  }
  uint64_t next_data(uint64_t offset, uint64_t file_size) override {
    return pool_->begin_use(this) ? file_->next_data(offset, file_size) : offset;
  }
  Result<uint64_t> punch(uint64_t offset, uint64_t length) override {
    return used([&](File& file) { return file.punch(offset, length); });
  }
  Result<uint64_t> add_at(uint64_t offset, uint64_t amount) override {
    return used([&](File& file) { return file.add_at(offset, amount); });
  }
  Status sync() override {
    return used([](File& file) { return file.sync(); });
  }
  bool lock(bool exclusive) override {
    is_pinned_ = exclusive && pool_->begin_use(this) && file_->lock(true);
    return exclusive ? is_pinned_ : pool_->begin_use(this) && file_->lock(false);
  }
  void unlock() override {
    is_pinned_ = false;
    if (file_) file_->unlock();
  }
  FileIdentity identity() override { return identity_; }

 private:
  friend class FilePool;
  template <class Use>
  auto used(Use use) -> decltype(use(std::declval<File&>())) {
    if (auto open = pool_->begin_use(this); !open) return std::unexpected(open.error());
    return use(*file_);
  }

  FilePool* pool_;
  std::string path_;
  FileMode mode_;
  bool is_pinned_ = false;
  FileIdentity identity_;
  std::unique_ptr<File> file_;  // null while it is closed
  std::list<PooledFile*>::iterator place_;
};

FilePool::FilePool() : most_open_(std::max<size_t>(8, descriptor_limit() / 4)) {}

Result<std::unique_ptr<File>> FilePool::open(const std::string& path, FileMode mode) {
  auto file = std::make_unique<PooledFile>(this, path, mode);
  if (auto open = begin_use(file.get()); !open) return std::unexpected(open.error());
  return file;
}

Status FilePool::begin_use(PooledFile* file) {
  if (file->file_) {
    open_.splice(open_.begin(), open_, file->place_);
    return {};
  }
  if (open_.size() >= most_open_) close_one();
  errno = 0;
  auto opened = open_file(file->path_, file->mode_);
  // Others may have taken what this pool counted on.
  while (!opened && (errno == EMFILE || errno == ENFILE) && close_one()) {
    errno = 0;
    opened = open_file(file->path_, file->mode_);
  }
  if (!opened) return std::unexpected(opened.error());
  const FileIdentity now = (*opened)->identity();
  if (file->identity_ != FileIdentity{} && file->identity_ != now) {
    return fail(ErrorCode::kSystem, file->path_ + ": it was replaced while being read");
  }
  file->identity_ = now;
  file->file_ = std::move(*opened);
  open_.push_front(file);
  file->place_ = open_.begin();
  return {};
}

/// False where none can be.
bool FilePool::close_one() {
  const auto last = std::find_if(open_.rbegin(), open_.rend(),
                                 [](const PooledFile* file) { return !file->is_pinned_; });
  if (last == open_.rend()) return false;
  (*last)->file_.reset();
  open_.erase(std::next(last).base());
  return true;
}

}  // namespace gpumemprof
