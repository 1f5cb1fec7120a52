// The smallest user of PyTorch's CPU allocator: the real libc10.so, called the way libtorch calls it (through the
// PLT), without the 1.5 s that `import torch` takes. A library for ctypes, and with -DPROGRAM a program.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *c10_alloc_cpu(size_t size) __asm__("_ZN3c109alloc_cpuEm");
void c10_free_cpu(void *block) __asm__("_ZN3c108free_cpuEPv");

void *allocate(size_t size) { return c10_alloc_cpu(size); }
void release(void *block) { c10_free_cpu(block); }

#ifdef PROGRAM
#include <signal.h>
#include <unistd.h>

// allocate COUNT [end]: blocks of 1000, 1001, ... bytes, every second one freed; then ends as `end` says.
int main(int argc, char **argv) {
  int count = argc > 1 ? atoi(argv[1]) : 1;
  const char *end = argc > 2 ? argv[2] : "return";
  for (int i = 0; i < count; i++) {
    char *block = allocate(1000 + i);
    memset(block, i, 1000 + i);
    if (i % 2) release(block);
  }
  printf("%d blocks\n", count);
  fflush(stdout);
  if (!strcmp(end, "segfault")) *(volatile int *)0 = 1;
  if (!strcmp(end, "abort")) abort();
  if (!strcmp(end, "_exit")) _exit(7);
  if (!strcmp(end, "sigpipe")) {
    int ends[2];
    if (pipe(ends)) return 9;
    close(ends[0]);
    if (write(ends[1], "x", 1) < 0) return 8;
  }
  if (!strcmp(end, "trap")) __builtin_trap();
  if (!strcmp(end, "setuid")) printf("uid %d %d\n", getuid() == geteuid(), (int)geteuid());
  return !strcmp(end, "fail") ? 3 : 0;
}
#endif
