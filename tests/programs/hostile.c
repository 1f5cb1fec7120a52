// What Python cannot do to itself. hostile MODE; uses PyTorch's allocator as allocate.c does.
#include <errno.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

void *allocate(size_t size) __asm__("_ZN3c109alloc_cpuEm");
void release(void *block) __asm__("_ZN3c108free_cpuEPv");

static void work(int count) {
  for (int i = 0; i < count; i++) release(allocate(1000));  // malloc needs no system call for these
}

static int say(const char *text) { return write(1, text, strlen(text)) < 0; }

static void *thread_work(void *unused) {
  work(20000);
  return unused;
}

static int in_thread(size_t stack_bytes) {
  pthread_attr_t attributes;
  pthread_t thread;
  pthread_attr_init(&attributes);
  if (stack_bytes && pthread_attr_setstacksize(&attributes, stack_bytes)) return 1;
  return pthread_create(&thread, &attributes, thread_work, 0) || pthread_join(thread, 0);
}

int main(int argc, char **argv) {
  const char *mode = argc > 1 ? argv[1] : "";
  if (!strcmp(mode, "strict") || !strcmp(mode, "strict_by_syscall")) {
    work(10);
    if (!strcmp(mode, "strict") ? prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) : syscall(SYS_seccomp, 0, 0, 0)) return 1;
    work(20000);
    say("strict\n");
    syscall(SYS_exit, 5);
  }
  if (!strcmp(mode, "fsize") || !strcmp(mode, "fsize_first")) {
    struct rlimit limit = {5000, 5000};
    if (!strcmp(mode, "fsize")) work(10);
    if (setrlimit(RLIMIT_FSIZE, &limit)) return 1;
    work(50000);
    return say("fsize\n");
  }
  if (!strcmp(mode, "small_stack")) return in_thread(32768) || say("small stack\n");
  if (!strcmp(mode, "threads")) {
    for (int i = 0; i < 50; i++)
      if (in_thread(0)) return 1;
    return say("threads\n");
  }
  if (!strcmp(mode, "vfork")) {
    work(10);
    for (int i = 0; i < 20; i++) {
      pid_t pid = vfork();
      if (pid == 0) {
        execl("/bin/true", "true", (char *)0);
        _exit(9);
      }
      int status;
      if (waitpid(pid, &status, 0) != pid || status) return 2;
      work(1000);
    }
    return say("vfork\n");
  }
  if (!strcmp(mode, "errno")) {  // a recorder must leave errno as it was
    errno = 4321;
    for (int i = 0; i < 20000; i++) {
      void *block = allocate(1000);
      release(block);
      if (errno != 4321) return 4;
    }
    return say("errno\n");
  }
  if (!strcmp(mode, "masked")) {  // every signal blocked, and its dispositions are the program's
    sigset_t all, now;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, 0);
    work(20000);
    sigprocmask(SIG_SETMASK, 0, &now);
    for (int s = 1; s < 65; s++) {
      struct sigaction action;
      if (s == 32 || s == 33 || sigaction(s, 0, &action)) continue;
      if (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN) return 5;
      if (s != SIGKILL && s != SIGSTOP && !sigismember(&now, s)) return 6;
    }
    return say("masked\n");
  }
  return 1;
}
