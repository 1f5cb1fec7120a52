#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error_text.h"

namespace gpumemprof {
namespace {

constexpr size_t kFirstPage = 4096;

class PosixFile final : public File {
 public:
  PosixFile(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  ~PosixFile() override {
    if (page_) munmap(page_, kFirstPage);
    close(fd_);
  }
  const std::string& path() const override { return path_; }

  Result<uint64_t> size() override {
    struct stat st;
    if (fstat(fd_, &st) != 0) return refused("cannot be examined");
    return static_cast<uint64_t>(st.st_size);
  }

  Result<size_t> read_at(uint64_t offset, void* data, size_t size) override {
    size_t done = 0;
    while (done < size) {
      ssize_t n = pread(fd_, static_cast<char*>(data) + done, size - done,
                        static_cast<off_t>(offset + done));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return refused("cannot be read");
      if (n == 0) break;
      done += static_cast<size_t>(n);
    }
    return done;
  }

  Status write_at(uint64_t offset, const void* data, size_t size) override {
    for (size_t done = 0; done < size;) {
      ssize_t n = pwrite(fd_, static_cast<const char*>(data) + done, size - done,
                         static_cast<off_t>(offset + done));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return refused("cannot be written");
      done += static_cast<size_t>(n);
    }
    return {};
  }

  uint64_t next_data(uint64_t offset, uint64_t file_size) override {
    if (offset >= file_size) return file_size;
    off_t at = lseek(fd_, static_cast<off_t>(offset), SEEK_DATA);
    if (at >= 0) return std::min(static_cast<uint64_t>(at), file_size);
    return errno == ENXIO ? file_size : offset;  // other errors: a file system without SEEK_DATA
  }

  Result<uint64_t> punch(uint64_t offset, uint64_t length) override {
    if (fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                  static_cast<off_t>(length)) == 0) {
      return length;
    }
    if (errno == EOPNOTSUPP || errno == ENOSYS || errno == EPERM) return uint64_t{0};
    return refused("a range cannot be released");
  }

  Result<uint64_t> add_at(uint64_t offset, uint64_t amount) override {
    auto bytes = size();  // a store beyond the end of a mapped file is a SIGBUS
    if (!bytes) return std::unexpected(bytes.error());
    if (*bytes < kFirstPage || offset + 8 > kFirstPage || offset % 8 != 0) {
      return fail(ErrorCode::kSystem, path_ + ": the first page is gone");
    }
    if (!page_) {
      void* p = mmap(nullptr, kFirstPage, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
      if (p == MAP_FAILED) return refused("cannot be mapped");
      page_ = static_cast<char*>(p);
    }
    return __atomic_fetch_add(reinterpret_cast<uint64_t*>(page_ + offset), amount,
                              __ATOMIC_RELAXED);
  }

  bool lock(bool exclusive) override {
    // A file system without locks (some network mounts) has no second sealer that could be seen
    // either.
    return flock(fd_, (exclusive ? LOCK_EX : LOCK_SH) | LOCK_NB) == 0 || errno != EWOULDBLOCK;
  }
  void unlock() override { flock(fd_, LOCK_UN); }
  FileIdentity identity() override {
    struct stat st;
    if (fstat(fd_, &st) != 0) return {};
    return {st.st_dev, st.st_ino};
  }
  Status sync() override {
    // Some file systems have no such thing; then nothing more can be done.
    if (fdatasync(fd_) == 0 || errno == EINVAL || errno == ENOSYS) return {};
    return refused("cannot be synced");
  }

 private:
  std::unexpected<Error> refused(const char* what) const {
    return fail(ErrorCode::kSystem, path_ + ": " + what + ": " + strerror(errno));
  }

  int fd_;
  std::string path_;
  char* page_ = nullptr;
};

}  // namespace

Result<std::unique_ptr<File>> open_file(const std::string& path, FileMode mode) {
  int flags = O_CLOEXEC | O_NONBLOCK | O_NOCTTY;  // O_NONBLOCK: opening a FIFO must not wait
  if (mode == FileMode::kRead) flags |= O_RDONLY;
  if (mode == FileMode::kReadWrite) flags |= O_RDWR;
  if (mode == FileMode::kCreate) flags |= O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW;
  int fd = open(path.c_str(), flags, 0600);
  if (fd < 0) {
    const bool is_written = mode != FileMode::kRead && errno != ENOENT && errno != ENOTDIR;
    const ErrorCode code = is_written ? ErrorCode::kSystem : unreadable_code(errno);
    return fail(code, path + ": " + strerror(errno));
  }
  struct stat st;
  if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
    close(fd);
    return fail(ErrorCode::kBadInput, path + ": not a regular file");
  }
  return std::make_unique<PosixFile>(fd, path);
}

Result<std::string> read_small_file(const std::string& path, size_t limit) {
  auto file = open_file(path, FileMode::kRead);
  if (!file) return std::unexpected(file.error());
  auto size = (*file)->size();
  if (!size) return std::unexpected(size.error());
  if (*size > limit) {
    return fail(ErrorCode::kBadInput, path + ": larger than " + std::to_string(limit) + " bytes");
  }
  std::string text(*size, '\0');
  auto got = (*file)->read_at(0, text.data(), text.size());
  if (!got) return std::unexpected(got.error());
  text.resize(*got);
  return text;
}

void sync_folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string folder = slash == path.npos ? "." : path.substr(0, slash + 1);
  int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  fsync(fd);
  close(fd);
}

}  // namespace gpumemprof
