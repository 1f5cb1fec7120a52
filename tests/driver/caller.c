#define _GNU_SOURCE
// A library that calls the driver, built under the names of several real ones: as the CUDA runtime does (how = 1: the
// function is asked for by name and version) or as PyTorch does for some (how = 0: dlsym by the exported name).
#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>

typedef long (*Function)(long, long, long, long, long, long);
struct Handle {
  char bytes[64];
};

static void* look(const char* library, const char* base, const char* exported, int how, long flags) {
  void* driver = dlopen(library, RTLD_LAZY);
  if (!driver) return NULL;
  if (how == 0) return dlsym(driver, exported);
  int (*get)(const char*, void**, int, uint64_t, int*) =
      (int (*)(const char*, void**, int, uint64_t, int*))dlsym(driver, "cuGetProcAddress_v2");
  void *self = NULL, *found = NULL;
  int status = -1;
  // As the runtime: the function that looks up is itself looked up, and used from then on.
  if (!get || get("cuGetProcAddress", &self, 12000, 0, &status) != 0) return NULL;
  get = (int (*)(const char*, void**, int, uint64_t, int*))self;
  return get(base, &found, 12040, (uint64_t)flags, &status) == 0 ? found : NULL;
}

/// The driver's answer; -1 where the function was not found.
int call_driver(const char* library, const char* base, const char* exported, int how, long flags, const long* a) {
  Function function = (Function)look(library, base, exported, how, flags);
  if (!function) return -1;
  int code = (int)function(a[0], a[1], a[2], a[3], a[4], a[5]);
  return code;  // no tail call: the return address is to lie here
}

/// errno after a call, having been 77 before it.
int errno_after(const char* base, const char* exported, const long* a) {
  Function function = (Function)look("libcuda.so.1", base, exported, 1, 0);
  errno = 77;
  if (function) function(a[0], a[1], a[2], a[3], a[4], a[5]);
  return errno;
}

/// From here on this process may call read, write, exit and what it did so far: a filter that allows all, as the tests
/// need no more than that there is one.
int restrict_itself(void) {
  struct {
    unsigned short code;
    unsigned char jt, jf;
    unsigned k;
  } allow = {6, 0, 0, 0x7fff0000};
  struct {
    unsigned short length;
    void* filter;
  } program = {1, &allow};
  prctl(38, 1, 0, 0, 0);
  return prctl(22, 2, &program);
}

int open_imported(long* out, long pid, long size) {
  int (*open)(long*, struct Handle, unsigned) = (int (*)(long*, struct Handle, unsigned))look(
      "libcuda.so.1", "cuIpcOpenMemHandle", "cuIpcOpenMemHandle_v2", 1, 0);
  const long words[3] = {pid, 0, size};
  struct Handle handle;
  memset(&handle, 0, sizeof handle);
  memcpy(&handle, words, sizeof words);
  int code = open ? open(out, handle, 1) : -1;
  return code;
}

int has_symbol(const char* name) {
  void* driver = dlopen("libcuda.so.1", RTLD_LAZY);
  return driver && dlsym(driver, name) != NULL;
}

/// What a framework's allocator on a GPU says of a block, to whoever stands in for PyTorch's function.
int report_block(void* address, long size, unsigned long allocated, unsigned long reserved) {
  struct Device {
    signed char type, index;
  } device = {1, 0};
  void (*report)(void*, long, unsigned long, unsigned long, struct Device) =
      (void (*)(void*, long, unsigned long, unsigned long, struct Device))dlsym(
          RTLD_DEFAULT, "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE");
  if (report) report(address, size, allocated, reserved, device);
  return report != NULL;
}
