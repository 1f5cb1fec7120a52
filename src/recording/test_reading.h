// For tests: a folder that goes away, and everything a recording yields.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "recording/fake_probe.h"
#include "recording/open.h"

namespace gpumemprof::for_tests {

class TempFolder {
 public:
  TempFolder();
  ~TempFolder();
  TempFolder(const TempFolder&) = delete;
  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + '/' + name; }

 private:
  std::string path_;
};

struct ReadTotals {
  uint64_t event, allocated_bytes, reserved_bytes;
  bool operator==(const ReadTotals&) const = default;
};

/// A mark as it was read; `before_event` counts over the whole source.
struct ReadMark {
  uint64_t before_event = 0;
  MarkKind kind = MarkKind::kStep;
  uint32_t tid = 0;
  std::string text;
  uint64_t address = 0, value = 0;
  bool operator==(const ReadMark&) const = default;
};
void PrintTo(const ReadMark& mark, std::ostream* out);

struct EverythingRead {
  std::string error;  ///< of open_recording or next(); empty where all went well
  std::vector<ExpectedEvent> events;
  std::vector<ReadTotals> totals;
  std::vector<ReadMark> marks;
  std::vector<std::pair<uint64_t, uint64_t>> requested;  ///< event, bytes
  std::vector<int64_t> steps;  ///< of every event, kNoStep where it has none
  std::vector<std::string> device_names;
  std::vector<Process> processes;
  std::vector<std::string> stack_of_first;
  Loss loss;
  bool in_time_order = true;
  uint64_t first_event = 0;  ///< number of the first event
};

EverythingRead read_all(const std::vector<std::string>& paths);

void write_file(const std::string& path, const std::string& content);
std::string read_file(const std::string& path);

}  // namespace gpumemprof::for_tests
