// For tests: what a recorded process does to an arena, from format/arena.h alone.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "base/file.h"
#include "recording/arena.h"
#include "recording/fake_probe.h"
#include "recording/test_reading.h"

namespace gpumemprof::for_tests {

/// A FakeProbe's file in a folder, its first page and its stages in an arena.
class ProcessInArena {
 public:
  ProcessInArena(std::shared_ptr<Arena> arena, const std::string& folder, FakeProbe* probe,
                 uint32_t pid)
      : arena_(std::move(arena)), probe_(probe), path_(folder + "/host.100.1.gmp") {
    probe_->save(path_);
    struct stat st{};
    stat(path_.c_str(), &st);
    format::ArenaPlace process{};
    process.recording_id = probe_->header().recording_id;
    process.length = format::kPage;
    process.device = st.st_dev, process.inode = st.st_ino;
    process.pid = pid;
    memcpy(process.file, "host.100.1.gmp", sizeof("host.100.1.gmp"));
    place_ = claim(&process);
    for (uint64_t& entry : arena_->header()->processes) {
      if (entry != 0) continue;
      entry = place_;
      break;
    }
    const format::ArenaHolder holder{arena_->id(), place_, {}, {}};
    write_file_at(format::kHolderOffset, &holder, sizeof(holder));
    page_.assign(probe_->bytes(), 0, format::kPage);
    memcpy(page_.data() + format::kHolderOffset, &holder, sizeof(holder));
    keep();
  }

  const std::string& path() const { return path_; }
  uint64_t place() const { return place_; }

  /// As the probe: what changes in the first page and the stages goes to the arena alone, chunks to
  /// the file.
  void keep() {
    std::string now = probe_->bytes();
    page_.replace(format::kStateOffset, 512, now, format::kStateOffset, 512);
    put(place_ + format::kPage, page_);
    uint64_t from = format::kPage;
    for (const auto& [offset, stage] : stages_) {
      put(stage + format::kPage, now.substr(offset, format::kStageBytes));
      write_file_at(from, now.data() + from, offset - from);
      from = offset + format::kStageBytes;
    }
    write_file_at(from, now.data() + from, now.size() - from);
  }

  /// A stage of the probe, at its place in the file, lies in the arena from now on.
  void take_stage(const FakeProbe::Thread& thread) {
    format::ArenaPlace stage{};
    stage.recording_id = probe_->header().recording_id;
    stage.file_offset = thread.offset;
    stage.length = format::kStageBytes;
    const uint64_t link = place_ + offsetof(format::ArenaPlace, first_stage);
    arena_->read_at(link, &stage.next_stage, sizeof(stage.next_stage));
    const uint64_t at = claim(&stage);
    stages_.emplace_back(thread.offset, at);
    put(link, std::string(reinterpret_cast<const char*>(&at), sizeof(at)));
    keep();
  }

 private:
  uint64_t claim(format::ArenaPlace* place) {
    const uint64_t at = arena_->header()->next_offset;
    arena_->header()->next_offset += format::kPage + place->length;
    place->magic = format::kArenaMagic ^ at;
    put(at, std::string(reinterpret_cast<const char*>(place), sizeof(*place)));
    return at;
  }
  void put(uint64_t at, const std::string& bytes) {
    [[maybe_unused]] ssize_t n =
        pwrite(arena_->fd(), bytes.data(), bytes.size(), static_cast<off_t>(at));
  }
  void write_file_at(uint64_t at, const void* data, size_t size) {
    auto file = open_file(path_, FileMode::kReadWrite);
    (void)(*file)->write_at(at, data, size);
  }

  std::shared_ptr<Arena> arena_;
  FakeProbe* probe_;
  std::string path_, page_;
  uint64_t place_ = 0;
  std::vector<std::pair<uint64_t, uint64_t>> stages_;  // offset in the file, place in the arena
};

}  // namespace gpumemprof::for_tests
