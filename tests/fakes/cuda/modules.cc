// Modules, libraries and streams. An image is the text "FAKE-MODULE " and how many bytes of the
// device it takes.
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>

#include "driver.h"

namespace fake_cuda {
namespace {

struct Module {
  int device;
  uint64_t bytes;
};
std::map<Module*, bool> g_modules;

Result load(Module** out, const char* image) {
  const std::lock_guard lock(g_lock);
  int device = 0;
  if (const Result code = current_device(&device)) return code;
  constexpr char kBegin[] = "FAKE-MODULE ";
  if (std::strncmp(image, kBegin, sizeof(kBegin) - 1) != 0) return kInvalidValue;
  const uint64_t bytes = std::strtoull(image + sizeof(kBegin) - 1, nullptr, 10);
  if (const Result code = charge(device, fake_gpu::kModules, int64_t(bytes))) return code;
  g_modules[*out = new Module{device, bytes}] = true;
  return kSuccess;
}

Result load_file(Module** out, const char* path) {
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  return load(out, text.c_str());
}

Result unload(Module* module) {
  const std::lock_guard lock(g_lock);
  if (g_modules.erase(module) == 0) return kInvalidHandle;
  charge(module->device, fake_gpu::kModules, -int64_t(module->bytes));
  delete module;
  return kSuccess;
}

}  // namespace
}  // namespace fake_cuda

using namespace fake_cuda;

FAKE_CUDA Result cuModuleLoad(Module** out, const char* path) { return load_file(out, path); }
FAKE_CUDA Result cuModuleLoadData(Module** out, const void* image) {
  return load(out, static_cast<const char*>(image));
}
FAKE_CUDA Result cuModuleLoadDataEx(Module** out, const void* image, unsigned, int*, void**) {
  return load(out, static_cast<const char*>(image));
}
FAKE_CUDA Result cuModuleLoadFatBinary(Module** out, const void* image) {
  return load(out, static_cast<const char*>(image));
}
FAKE_CUDA Result cuModuleUnload(Module* module) { return unload(module); }
FAKE_CUDA Result cuLibraryLoadData(Module** out, const void* code, int*, void**, unsigned, int*,
                                   void**, unsigned) {
  return load(out, static_cast<const char*>(code));
}
FAKE_CUDA Result cuLibraryLoadFromFile(Module** out, const char* path, int*, void**, unsigned, int*,
                                       void**, unsigned) {
  return load_file(out, path);
}
FAKE_CUDA Result cuLibraryUnload(Module* module) { return unload(module); }

FAKE_CUDA Result cuStreamCreate(void** stream, unsigned) {
  *stream = new Context*(current_context());
  return kSuccess;
}
FAKE_CUDA Result cuStreamCreateWithPriority(void** stream, unsigned flags, int) {
  return cuStreamCreate(stream, flags);
}
FAKE_CUDA Result cuStreamDestroy_v2(void* stream) {
  delete static_cast<Context**>(stream);
  return kSuccess;
}

/// The first kernel needs local memory: nobody is told.
FAKE_CUDA Result cuLaunchKernel(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                unsigned, void*, void**, void**) {
  const std::lock_guard lock(g_lock);
  int device = 0;
  if (const Result code = current_device(&device)) return code;
  static bool had_one = false;
  if (had_one) return kSuccess;
  had_one = true;
  return charge(device, fake_gpu::kHidden, 6 * int64_t{kMib});
}

/// Modes: 0 global, 1 of the thread, 2 relaxed.
FAKE_CUDA Result cuThreadExchangeStreamCaptureMode(int* mode) {
  static thread_local int now = 0;
  std::swap(now, *mode);
  return kSuccess;
}
