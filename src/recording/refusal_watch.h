// Notices from outside that a recorded process was refused memory.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "recording/recording_file.h"

namespace gpumemprof {

/// Processes count refusals in the first pages of their files; a look reads eight bytes of each.
/// Not thread-safe.
class RefusalWatch {
 public:
  static constexpr size_t kMostFiles = 256;
  /// Watches a .gmp file from now on; does nothing if it is watched already, or beyond kMostFiles.
  void add(const std::string& path);
  /// Whether any file's count has risen since the last look; a file's first look compares with 0.
  bool any_new();

 private:
  struct RefusalCount {
    std::unique_ptr<RecordingFile> file;
    uint64_t seen;
  };
  std::map<std::string, RefusalCount> files_;
};

}  // namespace gpumemprof
