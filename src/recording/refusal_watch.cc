#include "recording/refusal_watch.h"

#include <fcntl.h>
#include <unistd.h>

#include "format/format.h"

namespace gpumemprof {

RefusalWatch::~RefusalWatch() {
  for (const auto& [path, file] : files_) close(file.fd);
}

void RefusalWatch::add(const std::string& path) {
  if (files_.size() >= kMostFiles || files_.contains(path)) return;
  // Never a FIFO that would wait: the folder is somebody's.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd >= 0) files_.emplace(path, RefusalCount{fd, 0});
}

bool RefusalWatch::any_new() {
  bool found = false;
  for (auto& [path, file] : files_) {
    uint64_t now = 0;
    if (pread(file.fd, &now, sizeof now, format::kRefusalsOffset) != sizeof now) continue;
    found |= now > file.seen;
    file.seen = now;
  }
  return found;
}

}  // namespace gpumemprof
