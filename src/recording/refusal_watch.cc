#include "recording/refusal_watch.h"

#include "format/format.h"

namespace gpumemprof {

void RefusalWatch::add(const std::string& path) {
  if (files_.size() >= kMostFiles || files_.contains(path)) return;
  auto file = RecordingFile::open(path, FileMode::kRead);
  if (file) files_.emplace(path, RefusalCount{std::move(*file), 0});
}

bool RefusalWatch::any_new() {
  bool found = false;
  for (auto& [path, file] : files_) {
    uint64_t now = 0;
    auto got = file.file->read_at(format::kRefusalsOffset, &now, sizeof now);
    if (!got || *got != sizeof now) continue;
    found |= now > file.seen;
    file.seen = now;
  }
  return found;
}

}  // namespace gpumemprof
