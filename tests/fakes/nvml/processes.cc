// The lists of processes, in the sizes and by the protocol of each generation: ask how many, bring
// room for them.
#include <cstdint>
#include <cstring>

#include "../machine/machine_state.h"
#include "state.h"

using namespace fake_nvml;

namespace {

struct Entry {  // of every version: 16 bytes are the first one's, 24 the agreed, 32 of 535.43
  unsigned pid;
  unsigned long long used;
  unsigned gpu_instance, compute_instance;
  unsigned long long used_protected;
};
static_assert(sizeof(Entry) == 32);

/// Programs of the fake driver compute, each with what it has of the board.
void add_programs_here(const Board& board, const char* kind, std::vector<Entry>* entries) {
  const auto* state = fake_gpu::machine_state();
  if (!state || board.index >= state->device_count || std::strcmp(kind, "compute") != 0) return;
  for (const fake_gpu::ProcessState& process : state->processes) {
    const uint64_t used = fake_gpu::used_by_process(process, board.index);
    if (used == 0 || !fake_gpu::is_alive(process)) continue;
    entries->push_back(
        {static_cast<unsigned>(process.pid), used, board.gpu_instance, board.compute_instance, 0});
  }
}

int list(void* handle, const char* kind, unsigned* count, void* infos, size_t entry_bytes) {
  int code = 0;
  const Board* board = board_behind(handle, "processes", &code);
  if (!board) return code;
  if (const int refused = board->answer(kind)) return refused;
  std::vector<Entry> entries;
  for (const Process& process : board->processes) {
    if (process.kind.find(kind) == std::string::npos) continue;
    entries.push_back({process.pid, process.used.value_or(~0ull), board->gpu_instance,
                       board->compute_instance, 0});
  }
  add_programs_here(*board, kind, &entries);
  const unsigned room = *count;
  *count = static_cast<unsigned>(entries.size());
  if (entries.size() > room) return kInsufficientSize;
  for (size_t i = 0; i < entries.size(); ++i)
    std::memcpy(static_cast<char*>(infos) + i * entry_bytes, &entries[i], entry_bytes);
  return kSuccess;
}

struct Sample {
  unsigned pid;
  unsigned long long time_us;
  unsigned sm, memory, encoder, decoder;
};
static_assert(sizeof(Sample) == 32);

}  // namespace

#define FAKE_LIST(function, kind, bytes)                                      \
  FAKE_NVML_EXPORT int function(void* handle, unsigned* count, void* infos) { \
    return list(handle, kind, count, infos, bytes);                           \
  }

FAKE_LIST(nvmlDeviceGetComputeRunningProcesses, "compute", 16)
FAKE_LIST(nvmlDeviceGetGraphicsRunningProcesses, "graphics", 16)
#if FAKE_NVML_GENERATION >= 2
FAKE_LIST(nvmlDeviceGetComputeRunningProcesses_v2, "compute", 24)
FAKE_LIST(nvmlDeviceGetGraphicsRunningProcesses_v2, "graphics", 24)
FAKE_LIST(nvmlDeviceGetMPSComputeRunningProcesses_v2, "mps", 24)
#endif
#if FAKE_NVML_GENERATION >= 3
FAKE_LIST(nvmlDeviceGetComputeRunningProcesses_v3, "compute", machine()->process_entry_bytes)
FAKE_LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, "graphics", machine()->process_entry_bytes)
FAKE_LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3, "mps", machine()->process_entry_bytes)
#endif

FAKE_NVML_EXPORT int nvmlDeviceGetProcessUtilization(void* handle, Sample* samples, unsigned* count,
                                                     unsigned long long) {
  int code = 0;
  const Board* board = board_behind(handle, "process_utilization", &code);
  if (!board) return code;
  std::vector<Sample> found;
  // Two moments, the later one first, as a ring buffer has them.
  for (const unsigned long long time : {2000ull, 1000ull})
    for (const Process& process : board->processes)
      if (process.sm)
        found.push_back({process.pid, time, time == 2000 ? *process.sm : 99, 0, 0, 0});
  if (found.empty()) return kNotFound;
  const unsigned room = *count;
  *count = static_cast<unsigned>(found.size());
  if (samples == nullptr || found.size() > room) return kInsufficientSize;
  std::memcpy(samples, found.data(), found.size() * sizeof(Sample));
  return kSuccess;
}
