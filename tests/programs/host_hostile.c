/* What programs do around malloc and mmap. Prints only what must be the same without the recorder. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static void* volatile sink;
static char* early;

__attribute__((constructor)) static void before_main(void) {
  early = calloc(1, 123457);
  early[0] = 'e';
}
__attribute__((destructor)) static void after_main(void) { free(early); }

static void* one_thread(void* number) {
  const size_t size = 70000 + (size_t)(uintptr_t)number;
  char* p = malloc(size);
  memset(p, 1, size);
  p = realloc(p, 2 * size);
  char* map = mmap(NULL, 131072, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  map[0] = 1;
  munmap(map, 131072);
  free(p);
  return NULL;
}

static int threads(int count) {
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 65536);
  pthread_t* all = malloc(sizeof(pthread_t) * (size_t)count);
  for (int i = 0; i < count; ++i)
    if (pthread_create(&all[i], &small, one_thread, (void*)(uintptr_t)i)) return 3;
  for (int i = 0; i < count; ++i) pthread_join(all[i], NULL);
  free(all);
  return 0;
}

static volatile int handled;
static void handler(int number) {
  (void)number;
  const int saved = errno;
  char* map = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  map[0] = 1;
  munmap(map, 65536);
  if (errno != saved) abort();
  ++handled;
}

static int signals(void) {
  signal(SIGALRM, handler);
  struct itimerval often = {{0, 500}, {0, 500}};
  setitimer(ITIMER_REAL, &often, NULL);
  for (int i = 0; i < 100000 || handled < 50; ++i) {
    errno = 77;
    void* p = malloc(70000 + i % 1000);
    sink = p;
    free(p);
    if (errno != 77) return 4;
  }
  return 0;
}

static void* churn(void* unused) {
  (void)unused;
  for (int i = 0; i < 4000; ++i) free(malloc(66000 + i));
  return NULL;
}

/* Children of a process whose other threads allocate at that moment. */
static int forks(void) {
  pthread_t other;
  pthread_create(&other, NULL, churn, NULL);
  int bad = 0;
  for (int i = 0; i < 30; ++i) {
    pid_t pid = fork();
    if (pid == 0) {
      free(early);
      early = NULL;
      sink = malloc(88000);
      free(sink);
      _exit(i & 7);
    }
    int status;
    waitpid(pid, &status, 0);
    bad += !WIFEXITED(status) || WEXITSTATUS(status) != (i & 7);
    pid = vfork();
    if (pid == 0) {
      execl("/bin/true", "true", (char*)NULL);
      _exit(9);
    }
    waitpid(pid, &status, 0);
    bad += status;
  }
  pthread_join(other, NULL);
  return bad ? 5 : 0;
}

static int descriptors(void) {
  for (int fd = 3; fd < 256; ++fd) close(fd);
  void* p = malloc(1000000);
  sink = p;
  free(p);
  int open_now = 0;
  for (int fd = 3; fd < 256; ++fd) open_now += dup2(fd, fd) == fd;
  printf("%d\n", open_now);
  return 0;
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "";
  int rc = early[0] == 'e' ? 0 : 8;
  if (!strcmp(mode, "threads")) rc |= threads(atoi(argv[2]));
  if (!strcmp(mode, "signals")) rc |= signals();
  if (!strcmp(mode, "forks")) rc |= forks();
  if (!strcmp(mode, "descriptors")) rc |= descriptors();
  if (!strcmp(mode, "killed")) {
    sink = malloc(777777);
    kill(getpid(), SIGKILL);
  }
  if (!strcmp(mode, "refused")) {
    errno = 0;
    sink = malloc(SIZE_MAX / 2);
    printf("%d %d\n", sink == NULL, errno == ENOMEM);
  }
  return rc;
}
