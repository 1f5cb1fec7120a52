// A libcuda.so.1 of our own, by the documented interface: devices and contexts. What it hands out
// it counts in the machine's shared state; FAKE_NVML_BOARD and FAKE_GPU_STATE say which machine.
#include <cstdlib>
#include <cstring>
#include <vector>

#include "../nvml/board.h"
#include "driver.h"

namespace fake_cuda {

std::mutex g_lock;
bool g_is_initialized = false;

namespace {

std::unique_ptr<fake_nvml::Machine> g_machine;
fake_gpu::MachineState* g_state;
Context* g_primary[fake_gpu::kMostDevices];
thread_local std::vector<Context*> t_contexts;

uint64_t context_bytes(int device) {
  return g_machine->boards[static_cast<size_t>(device)]->context;
}

Result make_context(Context** out, int device, bool is_primary) {
  if (!is_device(device)) return kInvalidDevice;
  if (const Result code = charge(device, fake_gpu::kContexts, int64_t(context_bytes(device))))
    return code;
  *out = new Context{device, is_primary};
  return kSuccess;
}

void end_context(Context* context) {
  charge(context->device, fake_gpu::kContexts, -int64_t(context_bytes(context->device)));
  std::erase(t_contexts, context);
  delete context;
}

}  // namespace

int device_count() { return g_state ? static_cast<int>(g_state->device_count) : 0; }
bool is_device(int device) { return device >= 0 && device < device_count(); }
Context* current_context() { return t_contexts.empty() ? nullptr : t_contexts.back(); }

Result current_device(int* device) {
  if (!g_is_initialized) return kNotInitialized;
  const Context* context = current_context();
  if (!context) return kInvalidContext;
  *device = context->device;
  return kSuccess;
}

uint64_t total_bytes(int device) {
  const auto& state = g_state->devices[device];
  return state.total_bytes - state.reserved_bytes;
}

uint64_t free_bytes(int device) {
  const auto index = static_cast<unsigned>(device);
  const uint64_t used =
      g_state->devices[device].elsewhere_bytes + fake_gpu::used_by_all(*g_state, index);
  return used > total_bytes(device) ? 0 : total_bytes(device) - used;
}

Result charge(int device, Use use, int64_t bytes) {
  auto* own = fake_gpu::own_process(g_state);
  if (!own) return kOutOfMemory;
  if (bytes > 0 && static_cast<uint64_t>(bytes) > free_bytes(device)) return kOutOfMemory;
  __atomic_fetch_add(&own->bytes[device][use], static_cast<uint64_t>(bytes), __ATOMIC_SEQ_CST);
  return kSuccess;
}

void forget_device(int device) {
  forget_memory(device);
  forget_pools(device);
}

}  // namespace fake_cuda

using namespace fake_cuda;

FAKE_CUDA Result cuInit(unsigned flags) {
  const std::lock_guard lock(g_lock);
  if (flags != 0) return kInvalidValue;
  if (g_is_initialized) return kSuccess;
  g_machine = fake_nvml::load_machine();
  g_state = g_machine ? fake_gpu::machine_state() : nullptr;
  if (!g_state || g_state->device_count == 0) return kNoDevice;
  g_is_initialized = true;
  return kSuccess;
}

FAKE_CUDA Result cuDriverGetVersion(int* version) {
  *version = 12040;
  return kSuccess;
}

FAKE_CUDA Result cuDeviceGetCount(int* count) {
  if (!g_is_initialized) return kNotInitialized;
  *count = device_count();
  return kSuccess;
}

FAKE_CUDA Result cuDeviceGet(int* device, int ordinal) {
  if (!g_is_initialized) return kNotInitialized;
  if (!is_device(ordinal)) return kInvalidDevice;
  *device = ordinal;
  return kSuccess;
}

FAKE_CUDA Result cuDeviceGetName(char* name, int length, int device) {
  if (!is_device(device)) return kInvalidDevice;
  std::strncpy(name, g_machine->boards[static_cast<size_t>(device)]->name.c_str(), size_t(length));
  return kSuccess;
}

/// "GPU-5c89852c-d268-…" as sixteen bytes.
FAKE_CUDA Result cuDeviceGetUuid(unsigned char* uuid, int device) {
  if (!is_device(device)) return kInvalidDevice;
  std::string digits;
  for (char c : g_machine->boards[static_cast<size_t>(device)]->uuid.substr(4))
    if (c != '-') digits += c;
  digits.resize(32, '0');
  for (size_t i = 0; i < 16; ++i)
    uuid[i] = static_cast<unsigned char>(std::stoul(digits.substr(2 * i, 2), nullptr, 16));
  return kSuccess;
}
FAKE_CUDA Result cuDeviceGetUuid_v2(unsigned char* uuid, int device) {
  return cuDeviceGetUuid(uuid, device);
}

FAKE_CUDA Result cuDeviceTotalMem_v2(size_t* bytes, int device) {
  if (!is_device(device)) return kInvalidDevice;
  *bytes = total_bytes(device);
  return kSuccess;
}

FAKE_CUDA Result cuDeviceGetAttribute(int* value, int attribute, int device) {
  if (!is_device(device)) return kInvalidDevice;
  // Its place on the PCI bus: "00000000:3B:00.0".
  const std::string& place = g_machine->boards[static_cast<size_t>(device)]->bus;
  const auto hex = [&](size_t at, size_t length) {
    return at < place.size() ? static_cast<int>(std::stoul(place.substr(at, length), nullptr, 16)) : 0;
  };
  if (attribute == 33) return *value = hex(9, 2), kSuccess;
  if (attribute == 34) return *value = hex(12, 2), kSuccess;
  if (attribute == 50) return *value = hex(0, 8), kSuccess;
  // Unified addressing, managed memory, virtual memory management, memory pools.
  *value = attribute == 41 || attribute == 83 || attribute == 102 || attribute == 115;
  return kSuccess;
}

FAKE_CUDA Result cuDevicePrimaryCtxRetain(Context** context, int device) {
  const std::lock_guard lock(g_lock);
  if (!g_is_initialized) return kNotInitialized;
  if (!is_device(device)) return kInvalidDevice;
  if (g_primary[device]) {
    ++g_primary[device]->references;
  } else if (const Result code = make_context(&g_primary[device], device, true)) {
    return code;
  }
  *context = g_primary[device];
  return kSuccess;
}

FAKE_CUDA Result cuDevicePrimaryCtxGetState(int device, unsigned* flags, int* active) {
  const std::lock_guard lock(g_lock);
  if (!is_device(device)) return kInvalidDevice;
  *flags = 0, *active = g_primary[device] != nullptr;
  return kSuccess;
}

static Result end_primary(int device, bool at_once) {
  const std::lock_guard lock(g_lock);
  if (!is_device(device)) return kInvalidDevice;
  Context* context = g_primary[device];
  if (!context) return at_once ? kSuccess : kInvalidContext;
  if (!at_once && --context->references > 0) return kSuccess;
  forget_device(device);
  g_primary[device] = nullptr;
  end_context(context);
  return kSuccess;
}
FAKE_CUDA Result cuDevicePrimaryCtxRelease_v2(int device) { return end_primary(device, false); }
FAKE_CUDA Result cuDevicePrimaryCtxReset_v2(int device) { return end_primary(device, true); }

FAKE_CUDA Result cuCtxCreate_v2(Context** context, unsigned, int device) {
  const std::lock_guard lock(g_lock);
  if (!g_is_initialized) return kNotInitialized;
  const Result code = make_context(context, device, false);
  if (code == kSuccess) t_contexts.push_back(*context);
  return code;
}
FAKE_CUDA Result cuCtxCreate_v3(Context** context, void*, int, unsigned flags, int device) {
  return cuCtxCreate_v2(context, flags, device);
}
FAKE_CUDA Result cuCtxCreate_v4(Context** context, void*, unsigned flags, int device) {
  return cuCtxCreate_v2(context, flags, device);
}

FAKE_CUDA Result cuCtxDestroy_v2(Context* context) {
  const std::lock_guard lock(g_lock);
  if (!context || context->is_primary) return kInvalidContext;
  forget_device(context->device);
  end_context(context);
  return kSuccess;
}

FAKE_CUDA Result cuCtxSetCurrent(Context* context) {
  if (!t_contexts.empty()) t_contexts.pop_back();
  if (context) t_contexts.push_back(context);
  return kSuccess;
}
FAKE_CUDA Result cuCtxGetCurrent(Context** context) {
  *context = current_context();
  return kSuccess;
}
FAKE_CUDA Result cuCtxPushCurrent_v2(Context* context) {
  if (!context) return kInvalidContext;
  t_contexts.push_back(context);
  return kSuccess;
}
FAKE_CUDA Result cuCtxPopCurrent_v2(Context** context) {
  if (t_contexts.empty()) return kInvalidContext;
  if (context) *context = t_contexts.back();
  t_contexts.pop_back();
  return kSuccess;
}
FAKE_CUDA Result cuCtxGetDevice(int* device) { return current_device(device); }

/// Limit 1 is the printf buffer, 2 the heap of device code: growing one takes memory.
FAKE_CUDA Result cuCtxSetLimit(int limit, size_t value) {
  const std::lock_guard lock(g_lock);
  int device = 0;
  if (const Result code = current_device(&device)) return code;
  size_t& now = current_context()->limits[limit];
  const auto more = int64_t(round_up(value, kPage)) - int64_t(round_up(now, kPage));
  if (const Result code = charge(device, fake_gpu::kHidden, more)) return code;
  now = value;
  return kSuccess;
}

FAKE_CUDA Result cuMemGetInfo_v2(size_t* free, size_t* total) {
  int device = 0;
  if (const Result code = current_device(&device)) return code;
  *free = free_bytes(device), *total = total_bytes(device);
  return kSuccess;
}

FAKE_CUDA Result cuCtxSynchronize() {
  int device = 0;
  if (const Result code = current_device(&device)) return code;
  trim_pools_at_synchronisation();
  return kSuccess;
}

FAKE_CUDA Result cuGetErrorName(int code, const char** name) {
  static const std::map<int, const char*> names = {{kSuccess, "CUDA_SUCCESS"},
                                                   {kInvalidValue, "CUDA_ERROR_INVALID_VALUE"},
                                                   {kOutOfMemory, "CUDA_ERROR_OUT_OF_MEMORY"},
                                                   {kNotInitialized, "CUDA_ERROR_NOT_INITIALIZED"},
                                                   {kNoDevice, "CUDA_ERROR_NO_DEVICE"},
                                                   {kInvalidDevice, "CUDA_ERROR_INVALID_DEVICE"},
                                                   {kInvalidContext, "CUDA_ERROR_INVALID_CONTEXT"},
                                                   {kInvalidHandle, "CUDA_ERROR_INVALID_HANDLE"},
                                                   {kNotFound, "CUDA_ERROR_NOT_FOUND"},
                                                   {kNotSupported, "CUDA_ERROR_NOT_SUPPORTED"}};
  const auto at = names.find(code);
  *name = at == names.end() ? nullptr : at->second;
  return *name ? kSuccess : kInvalidValue;
}
FAKE_CUDA Result cuGetErrorString(int code, const char** text) {
  return cuGetErrorName(code, text);
}
FAKE_CUDA Result cuGetExportTable(const void**, const void*) { return kNotFound; }
