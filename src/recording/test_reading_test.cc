#include "recording/test_reading.h"

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace gpumemprof::for_tests {

void PrintTo(const ExpectedEvent& event, std::ostream* out) {
  *out << "{time " << event.time_ns << ", action " << int(event.action) << ", address "
       << event.address << ", size " << event.size_bytes << ", tid " << event.tid << ", "
       << event.leaf << '}';
}

void PrintTo(const ReadMark& mark, std::ostream* out) {
  *out << "{before " << mark.before_event << ", kind " << int(mark.kind) << ", tid " << mark.tid
       << ", address " << mark.address << ", value " << mark.value << ", " << mark.text << '}';
}

TempFolder::TempFolder() {
  const char* base = getenv("TMPDIR");
  std::string name = std::string(base ? base : "/tmp") + "/gmp-test-XXXXXX";
  if (mkdtemp(name.data())) path_ = name;
}
TempFolder::~TempFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

EverythingRead read_all(const std::vector<std::string>& paths) {
  EverythingRead all;
  auto source = open_recording(paths);
  if (!source) return all.error = source.error().message, all;
  EventBatch batch;
  uint64_t last = 0;
  bool first = true;
  for (;;) {
    auto more = (*source)->next(&batch);
    if (!more) return all.error = more.error().message, all;
    if (!*more) break;
    if (first) all.first_event = batch.first_event;
    first = false;
    const Tables& tables = (*source)->tables();
    const uint64_t base = all.events.size();
    for (size_t i = 0; i < batch.size(); ++i) {
      auto lines = stack_lines(tables, batch.stack[i]);
      if (all.stack_of_first.empty()) all.stack_of_first = lines;
      std::string leaf = lines.empty() ? "" : lines[0].substr(lines[0].rfind(' ') + 1);
      all.in_time_order &= batch.time_ns[i] >= last;
      last = batch.time_ns[i];
      all.events.push_back({batch.time_ns[i], batch.address[i], batch.size_bytes[i],
                            static_cast<uint8_t>(batch.action[i]),
                            tables.threads[batch.thread[i]].tid, leaf,
                            batch.step.empty() ? kNoStep : batch.step[i]});
    }
    for (const Mark& mark : batch.marks) {
      all.marks.push_back({base + mark.before_event, mark.kind, tables.threads[mark.thread].tid,
                           std::string(tables.strings.get(mark.text)), mark.address, mark.value});
    }
    std::vector<int64_t> steps = batch.step;
    steps.resize(batch.size(), kNoStep);
    all.steps.insert(all.steps.end(), steps.begin(), steps.end());
    for (const RequestedSize& r : batch.requested) {
      all.requested.emplace_back(base + r.event, r.bytes);
    }
    for (const DeviceTotals& t : batch.totals) {
      all.totals.push_back({base + t.event, t.allocated_bytes, t.reserved_bytes});
    }
  }
  all.loss = (*source)->loss();
  all.processes = (*source)->tables().processes;
  for (const Device& device : (*source)->tables().devices)
    all.device_names.push_back(device_name(device));
  return all;
}

void write_file(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
}

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream out;
  out << in.rdbuf();
  return out.str();
}

}  // namespace gpumemprof::for_tests
