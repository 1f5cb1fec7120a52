/* Which of the driver's calls raise a device's used memory: one line for each, with the kernel where the call names one.
   Programs that the program starts are followed, too: python3 may be a script that starts the real one.

     gcc -shared -fPIC -O2 -o used_by_call.so bench/gpu/used_by_call.c -ldl
     LD_PRELOAD=./used_by_call.so python3 bench/programs/gpu_libraries.py plain

   Needs libcupti and libnvidia-ml; CUPTI names libcupti where the loader does not find it. Alone on the GPU. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* CUpti_CallbackData, the first members. */
struct data {
  int site; /* 0: before the call, 1: after it */
  const char* function;
  const void* params;
  void* result;
  const char* symbol;
};
struct memory {
  unsigned long long total, free, used;
};
static int (*memory_of)(void*, struct memory*);
static void* device;
static unsigned long long last;
static FILE* out;

static void called(void* unused, int domain, uint32_t id, const struct data* data) {
  struct memory now;
  (void)unused, (void)domain, (void)id;
  if (memory_of(device, &now) != 0 || now.used == last) return;
  fprintf(out, "used %+9.1f MiB = %9.1f %s %s %s\n", ((double)now.used - (double)last) / (1 << 20),
          (double)now.used / (1 << 20), data->site ? "after" : "before", data->function ? data->function : "?",
          data->symbol ? data->symbol : "");
  fflush(out);
  last = now.used;
}

__attribute__((constructor)) static void begin(void) {
  void *subscriber, *cupti, *nvml;
  const char* path = getenv("CUPTI");
  out = fdopen(dup(2), "w");
  nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW);
  cupti = dlopen(path ? path : "libcupti.so", RTLD_NOW);
  if (!nvml || !cupti) {
    fprintf(stderr, "used_by_call: %s\n", dlerror());
    return;
  }
  int (*init)(void) = dlsym(nvml, "nvmlInit_v2");
  int (*by_index)(unsigned, void**) = dlsym(nvml, "nvmlDeviceGetHandleByIndex_v2");
  int (*subscribe)(void**, void*, void*) = dlsym(cupti, "cuptiSubscribe");
  int (*enable)(uint32_t, void*, int) = dlsym(cupti, "cuptiEnableDomain");
  memory_of = dlsym(nvml, "nvmlDeviceGetMemoryInfo");
  if (init() != 0 || by_index(0, &device) != 0 || subscribe(&subscriber, called, NULL) != 0 ||
      enable(1, subscriber, 1 /* the driver's calls */) != 0)
    fprintf(stderr, "used_by_call: NVML or CUPTI refused\n");
}
