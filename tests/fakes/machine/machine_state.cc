#include "machine_state.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "../nvml/board.h"

namespace fake_gpu {
namespace {

void fill(MachineState* state) {
  const auto machine = fake_nvml::load_machine();
  if (!machine) return;
  for (const auto& board : machine->boards) {
    if (state->device_count == kMostDevices) break;
    DeviceState& device = state->devices[state->device_count++];
    device = {board->total, board->reserved, board->allocated};
  }
  __atomic_store_n(&state->magic, kMagic, __ATOMIC_RELEASE);
}

MachineState* open_state() {
  const char* path = std::getenv("FAKE_GPU_STATE");
  if (!path || !*path) return nullptr;
  const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return nullptr;
  flock(fd, LOCK_EX);
  void* mapped = MAP_FAILED;
  if (ftruncate(fd, sizeof(MachineState)) == 0) {
    mapped = mmap(nullptr, sizeof(MachineState), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  }
  auto* state = mapped == MAP_FAILED ? nullptr : static_cast<MachineState*>(mapped);
  if (state && state->magic != kMagic) fill(state);
  flock(fd, LOCK_UN);  // closing is not enough: the mapping keeps the file open
  close(fd);
  return state && state->magic == kMagic ? state : nullptr;
}

}  // namespace

MachineState* machine_state() {
  static MachineState* const state = open_state();
  return state;
}

bool is_alive(const ProcessState& process) {
  return process.pid != 0 && (kill(static_cast<pid_t>(process.pid), 0) == 0 || errno == EPERM);
}

uint64_t used_by_process(const ProcessState& process, unsigned device) {
  uint64_t sum = 0;
  for (unsigned use = 0; use < kUses; ++use)
    sum += __atomic_load_n(&process.bytes[device][use], __ATOMIC_RELAXED);
  return sum;
}

uint64_t used_by_all(const MachineState& state, unsigned device) {
  uint64_t sum = 0;
  for (const ProcessState& process : state.processes)
    if (is_alive(process)) sum += used_by_process(process, device);
  return sum;
}

ProcessState* own_process(MachineState* state) {
  if (!state) return nullptr;
  const auto own = static_cast<uint64_t>(getpid());
  for (ProcessState& process : state->processes)
    if (process.pid == own) return &process;
  for (ProcessState& process : state->processes) {
    uint64_t none = 0;
    if (__atomic_compare_exchange_n(&process.pid, &none, own, false, __ATOMIC_SEQ_CST,
                                    __ATOMIC_SEQ_CST))
      return &process;
  }
  return nullptr;
}

}  // namespace fake_gpu
