// A program may forbid itself system calls, with death as the penalty. From the moment it asks for
// that we make none. prctl(PR_SET_SECCOMP) and syscall(SYS_seccomp) are the two ways in; both only
// set a flag and go on.
#include <stdint.h>

#include "probe/dynamic.h"
#include "probe/recorder.h"

namespace gpumemprof::probe {

constexpr int kPrctlSetSeccomp = 22, kModeStrict = 1, kOperationStrict = 0;

/// Called before the sandbox stands, so the file can still be told. The arguments are those of
/// prctl or syscall. Whether the kernel then agrees is not waited for: when in doubt, less is
/// recorded.
extern "C" __attribute__((visibility("hidden"), used)) void gpumemprof_on_seccomp(int call,
                                                                                  int mode) {
  if (mode == (call == kPrctlSetSeccomp ? kModeStrict : kOperationStrict)) freeze();
  __atomic_store_n(&g_sandboxed, true, __ATOMIC_SEQ_CST);
  if (format::FileState* shared = file_state())
    __atomic_store_n(&shared->sandboxed, 1, __ATOMIC_RELAXED);
}

extern "C" {
__attribute__((visibility("hidden"))) void* gpumemprof_real_prctl;
__attribute__((visibility("hidden"))) void* gpumemprof_real_syscall;

__attribute__((visibility("hidden"), used)) void gpumemprof_find_real_syscalls() {
  __atomic_store_n(&gpumemprof_real_prctl, dlsym(RTLD_NEXT, "prctl"), __ATOMIC_RELEASE);
  __atomic_store_n(&gpumemprof_real_syscall, dlsym(RTLD_NEXT, "syscall"), __ATOMIC_RELEASE);
}
}

__attribute__((constructor)) static void find_real_syscalls() { gpumemprof_find_real_syscalls(); }

}  // namespace gpumemprof::probe

#if defined(__x86_64__)
// In assembly and as a jump, so that the real function sees exactly the registers and the stack
// that its caller made (both are variadic, and syscall(SYS_vfork) must not return through a frame
// of ours). On the rare path all argument registers are saved around our C function.
#define JUMP_HOOK(name, number, real)                                             \
  __asm__(".text\n.globl " name "\n.type " name ",@function\n" name               \
          ":\n"                                                                   \
          "  endbr64\n"                                                           \
          "  cmpl $" number                                                       \
          ", %edi\n"                                                              \
          "  je 1f\n"                                                             \
          "2:\n"                                                                  \
          "  movq " real                                                          \
          "(%rip), %r11\n"                                                        \
          "  testq %r11, %r11\n"                                                  \
          "  je 3f\n"                                                             \
          "  jmp *%r11\n"                                                         \
          "1:\n"                                                                  \
          "  pushq %rdi\n  pushq %rsi\n  pushq %rdx\n  pushq %rcx\n  pushq %r8\n" \
          "  pushq %r9\n  pushq %rax\n"                                           \
          "  call gpumemprof_on_seccomp\n"                                        \
          "  popq %rax\n  popq %r9\n  popq %r8\n  popq %rcx\n  popq %rdx\n"       \
          "  popq %rsi\n  popq %rdi\n"                                            \
          "  jmp 2b\n"                                                            \
          "3:\n"                                                                  \
          "  pushq %rdi\n  pushq %rsi\n  pushq %rdx\n  pushq %rcx\n  pushq %r8\n" \
          "  pushq %r9\n  pushq %rax\n"                                           \
          "  call gpumemprof_find_real_syscalls\n"                                \
          "  popq %rax\n  popq %r9\n  popq %r8\n  popq %rcx\n  popq %rdx\n"       \
          "  popq %rsi\n  popq %rdi\n"                                            \
          "  jmp 2b\n"                                                            \
          ".size " name ", .-" name "\n")
JUMP_HOOK("prctl", "22" /* PR_SET_SECCOMP */, "gpumemprof_real_prctl");
JUMP_HOOK("syscall", "317" /* SYS_seccomp */, "gpumemprof_real_syscall");
#endif
