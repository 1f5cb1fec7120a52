/* Blocks and maps of known sizes: each size occurs once, and test_known_blocks.py has them all. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define KB 1024u
static void* volatile sink;

static void blocks(void) {
  char* a = malloc(100003);
  memset(a, 7, 100003);
  char* b = calloc(7, 20011);
  for (int i = 0; i < 140077; ++i)
    if (b[i]) abort();
  a = realloc(a, 300007);
  for (int i = 0; i < 100003; ++i)
    if (a[i] != 7) abort();
  a = realloc(a, 50);
  free(a);
  void* c = NULL;
  if (posix_memalign(&c, 4096, 400009) || (uintptr_t)c % 4096) abort();
  void* d = aligned_alloc(64, 500032);
  void* e = memalign(1024, 600011);
  if (!d || !e || (uintptr_t)e % 1024) abort();
  void* small = malloc(65535);
  sink = small;
  free(small);
  void* edge = malloc(65536);
  sink = edge;
  free(c);
  free(d);
  free(b);
  sink = e;  /* stays: e and edge */
  if (realloc(e, SIZE_MAX / 2) || errno != ENOMEM) abort();
  if (posix_memalign(&c, 3, 700001) != EINVAL) abort();
  errno = 0;
  free(NULL);
  if (errno) abort();
}

static void maps(const char* path) {
  const int both = PROT_READ | PROT_WRITE, own = MAP_PRIVATE | MAP_ANONYMOUS;
  char* a = mmap(NULL, 1024 * KB, both, own, -1, 0);
  munmap(a + 256 * KB, 128 * KB);                           /* leaves 256 and 640 KB */
  mmap(a + 512 * KB, 64 * KB, both, own | MAP_FIXED, -1, 0);  /* leaves 128, 64 and 448 */
  char* b = mmap(NULL, 2048 * KB, both, own, -1, 0);
  b = mremap(b, 2048 * KB, 8192 * KB, MREMAP_MAYMOVE);
  b[8192 * KB - 1] = 1;
  void* none = mmap(NULL, 4096 * KB, PROT_NONE, own, -1, 0);
  munmap(none, 4096 * KB);
  if (mmap(NULL, 3 * 65536, both, MAP_PRIVATE, -1, 0) != MAP_FAILED || errno != EBADF) abort();
  if (munmap(b + 1, 4096) == 0 || errno != EINVAL) abort();
  int fd = open(path, O_RDONLY);
  char* c = mmap(NULL, 70000, PROT_READ, MAP_SHARED, fd, 0); /* 18 pages */
  close(fd);
  if (c[0] != 'x') abort();
}

int main(int argc, char** argv) {
  blocks();
  maps(argv[1]);
  if (argc > 2) {
    fflush(stdout);
    if (fork() == 0) {
      free(sink);  /* the parent's: nothing of it is the child's */
      sink = malloc(900001);
      return 0;
    }
    wait(NULL);
  }
  return 0;
}
