/* An allocator that gives nothing back, as a part of a program or as a library before it. With -DMAIN also
   the program: it says whether its blocks are this allocator's. With -DWITH_MMAP its mmap is its own, as that of
   gperftools' tcmalloc is. */
#define _GNU_SOURCE
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#ifndef WITHOUT_ALLOCATOR
#define POOL ((size_t)64 << 20)
static char* pool;
static size_t used;

static void* take(size_t alignment, size_t size) {
  if (!pool) {
    pool = mmap(NULL, POOL, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  }
  const size_t at = (used + 16 + alignment - 1) & ~(alignment - 1);
  if (size > POOL || at + size > POOL) return errno = ENOMEM, NULL;
  used = at + size;
  memcpy(pool + at - 8, &size, 8);
  return pool + at;
}
void* malloc(size_t size) { return take(16, size); }
void* calloc(size_t n, size_t size) { return take(16, n * size); }
void free(void* p) { (void)p; }
void* realloc(void* p, size_t size) {
  void* fresh = take(16, size);
  size_t had = 0;
  if (p) memcpy(&had, (char*)p - 8, 8);
  if (p && fresh) memcpy(fresh, p, had < size ? had : size);
  return fresh;
}
int posix_memalign(void** out, size_t alignment, size_t size) { return (*out = take(alignment, size)) ? 0 : ENOMEM; }
void* aligned_alloc(size_t alignment, size_t size) { return take(alignment, size); }
void* memalign(size_t alignment, size_t size) { return take(alignment, size); }
int is_of_pool(const void* p) { return (const char*)p >= pool && (const char*)p < pool + POOL; }
#ifdef WITH_MMAP
#include <sys/syscall.h>
#include <unistd.h>
void* mmap(void* at, size_t size, int protection, int flags, int fd, off_t offset) {
  return (void*)syscall(SYS_mmap, at, size, protection, flags, fd, offset);
}
int munmap(void* at, size_t size) { return (int)syscall(SYS_munmap, at, size); }
#endif
#endif

#ifdef MAIN
#include <stdlib.h>
int is_of_pool(const void* p);
int main(void) {
  void* volatile block = malloc(222222);
  void* volatile moved = realloc(block, 333333);
  printf("%d %d\n", is_of_pool(block), is_of_pool(moved));
  free(moved);
  void* map = mmap(NULL, 444416, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return map == MAP_FAILED;
}
#endif
