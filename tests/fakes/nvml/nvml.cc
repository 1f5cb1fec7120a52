// A libnvidia-ml.so.1 of our own, by the documented interface: what it shows is in the file that
// FAKE_NVML_BOARD names. FAKE_NVML_GENERATION is which driver it stands for: 1 before 2020 (first
// versions alone, no MIG), 2 of 2021 (process lists of version 2, MIG), 3 of today.
// The structures are declared here once more, so that a mistake in the collector's cannot hide.
#include <cstdint>
#include <cstring>

#include "../machine/machine_state.h"
#include "state.h"

namespace fake_nvml {

uint64_t used_here(const Board& board) {
  const auto* state = fake_gpu::machine_state();
  return state && board.index < state->device_count ? fake_gpu::used_by_all(*state, board.index)
                                                    : 0;
}

static std::unique_ptr<Machine> loaded;
static int sessions = 0;  // as the real one counts: the last shutdown ends it

Machine* machine() { return loaded.get(); }

const Board* board_behind(void* handle, const char* what, int* code) {
  *code = kUninitialized;
  if (!loaded) return nullptr;
  const auto* board = static_cast<const Board*>(handle);
  *code = board ? board->answer(what) : int{kInvalidArgument};
  return *code == kSuccess ? board : nullptr;
}

namespace {

int copy_text(const std::string& text, char* buffer, unsigned size) {
  if (buffer == nullptr) return kInvalidArgument;
  if (text.size() + 1 > size) return kInsufficientSize;
  std::memcpy(buffer, text.c_str(), text.size() + 1);
  return kSuccess;
}

int number(void* handle, const char* what, unsigned Board::* field, unsigned* out) {
  int code = 0;
  if (const Board* board = board_behind(handle, what, &code)) *out = board->*field;
  return code;
}

struct MemoryV1 {
  unsigned long long total, free, used;
};
struct MemoryV2 {
  unsigned version;
  unsigned long long total, reserved, free, used;
};
static_assert(sizeof(MemoryV1) == 24 && sizeof(MemoryV2) == 40);

}  // namespace
}  // namespace fake_nvml

using namespace fake_nvml;

FAKE_NVML_EXPORT int nvmlInit_v2() {
  if (sessions > 0) return ++sessions, kSuccess;
  auto read = load_machine();
  if (!read) return kUnknown;
  if (read->init != kSuccess) return read->init;
  loaded = std::move(read);
  sessions = 1;
  return kSuccess;
}

FAKE_NVML_EXPORT int nvmlShutdown() {
  if (!loaded) return kUninitialized;
  if (--sessions == 0) loaded.reset();
  return kSuccess;
}

FAKE_NVML_EXPORT const char* nvmlErrorString(int code) {
  return code == kUnknown ? "Unknown Error" : "a text of the fake";
}

FAKE_NVML_EXPORT int nvmlSystemGetDriverVersion(char* buffer, unsigned size) {
  return loaded ? copy_text(loaded->driver, buffer, size) : int{kUninitialized};
}

FAKE_NVML_EXPORT int nvmlDeviceGetCount_v2(unsigned* count) {
  if (!loaded) return kUninitialized;
  *count = static_cast<unsigned>(loaded->boards.size());
  return kSuccess;
}

FAKE_NVML_EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** handle) {
  if (!loaded) return kUninitialized;
  if (index >= loaded->boards.size()) return kInvalidArgument;
  *handle = loaded->boards[index].get();
  return loaded->boards[index]->answer("handle");
}

FAKE_NVML_EXPORT int nvmlDeviceGetHandleByUUID(const char* uuid, void** handle) {
  if (!loaded) return kUninitialized;
  for (const auto& board : loaded->boards) {
    if (board->uuid != uuid) continue;
    *handle = board.get();
    return board->answer("handle");
  }
  return kNotFound;
}

FAKE_NVML_EXPORT int nvmlDeviceGetName(void* handle, char* buffer, unsigned size) {
  int code = 0;
  const Board* board = board_behind(handle, "name", &code);
  return board ? copy_text(board->name, buffer, size) : code;
}

FAKE_NVML_EXPORT int nvmlDeviceGetUUID(void* handle, char* buffer, unsigned size) {
  int code = 0;
  const Board* board = board_behind(handle, "uuid", &code);
  return board ? copy_text(board->uuid, buffer, size) : code;
}

FAKE_NVML_EXPORT int nvmlDeviceGetPciInfo_v3(void* handle, void* info) {
  int code = 0;
  const Board* board = board_behind(handle, "pci", &code);
  if (!board) return code;
  if (board->is_slice) return kNotSupported;
  auto* bytes = static_cast<char*>(info);
  std::memset(bytes, 0, 68);
  return copy_text(board->bus, bytes + 36, 32);
}

FAKE_NVML_EXPORT int nvmlDeviceGetMemoryInfo(void* handle, MemoryV1* out) {
  int code = 0;
  const Board* board = board_behind(handle, "memory", &code);
  if (!board) return code;
  const auto used = board->allocated + board->reserved + used_here(*board);
  *out = {board->total, board->total - used, used};
  return kSuccess;
}

#if FAKE_NVML_GENERATION >= 3
FAKE_NVML_EXPORT int nvmlDeviceGetMemoryInfo_v2(void* handle, MemoryV2* out) {
  if (out->version != (sizeof(MemoryV2) | 2u << 24)) return kVersionMismatch;
  int code = 0;
  const Board* board = board_behind(handle, "memory", &code);
  if (!board) return code;
  const auto used = board->allocated + used_here(*board);
  *out = {out->version, board->total, board->reserved, board->total - used - board->reserved, used};
  return kSuccess;
}
#endif

FAKE_NVML_EXPORT int nvmlDeviceGetUtilizationRates(void* handle, unsigned* rates) {
  int code = 0;
  const Board* board = board_behind(handle, "utilization", &code);
  if (!board) return code;
  // In MIG mode the whole board has no such figure.
  if (board->is_slice || board->mig.value_or(false)) return kNotSupported;
  rates[0] = board->gpu_percent, rates[1] = board->memory_percent;
  return kSuccess;
}

FAKE_NVML_EXPORT int nvmlDeviceGetTemperature(void* handle, int sensor, unsigned* out) {
  return sensor == 0 ? number(handle, "temperature", &Board::temperature, out)
                     : int{kInvalidArgument};
}

FAKE_NVML_EXPORT int nvmlDeviceGetPowerUsage(void* handle, unsigned* out) {
  return number(handle, "power", &Board::power_mw, out);
}

#if FAKE_NVML_GENERATION >= 2
FAKE_NVML_EXPORT int nvmlDeviceGetMigMode(void* handle, unsigned* now, unsigned* pending) {
  int code = 0;
  const Board* board = board_behind(handle, "mig", &code);
  if (!board) return code;
  if (!board->mig) return kNotSupported;
  *now = *pending = *board->mig ? 1 : 0;
  return kSuccess;
}

FAKE_NVML_EXPORT int nvmlDeviceGetMaxMigDeviceCount(void* handle, unsigned* count) {
  int code = 0;
  const Board* board = board_behind(handle, "mig", &code);
  if (board) *count = board->mig ? 7 : 0;
  return code;
}

FAKE_NVML_EXPORT int nvmlDeviceGetMigDeviceHandleByIndex(void* handle, unsigned index, void** out) {
  int code = 0;
  const Board* board = board_behind(handle, "mig", &code);
  if (!board) return code;
  if (index >= board->slices.size()) return kNotFound;
  *out = board->slices[index].get();
  return kSuccess;
}

FAKE_NVML_EXPORT int nvmlDeviceGetGpuInstanceId(void* handle, unsigned* out) {
  return number(handle, "instance", &Board::gpu_instance, out);
}

FAKE_NVML_EXPORT int nvmlDeviceGetComputeInstanceId(void* handle, unsigned* out) {
  return number(handle, "instance", &Board::compute_instance, out);
}
#endif
