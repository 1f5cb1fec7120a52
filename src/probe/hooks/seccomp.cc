// A program may forbid itself system calls, with death as the penalty. From the moment it asks for
// that we make none. prctl(PR_SET_SECCOMP) and syscall(SYS_seccomp) are the two ways in; both only
// set a flag and go on.

#include "probe/dynamic.h"
#include "probe/recorder.h"
#include "probe/sys.h"

namespace gpumemprof::probe {

namespace {

constexpr int kPrctlSetSeccomp = 22;     // PR_SET_SECCOMP: mode 1 is strict, 2 a filter
constexpr int kStrict = 0, kFilter = 1;  // operations of SYS_seccomp; the others only ask

}  // namespace

/// Called before the sandbox stands, so the file can still be told. The arguments are the first
/// three of prctl or syscall. Whether the kernel then agrees is not waited for: when in doubt, less
/// is recorded.
extern "C" __attribute__((visibility("hidden"), used)) void gpumemprof_on_seccomp(
    int call, int mode, const void* filter) {
  int operation = call == kPrctlSetSeccomp ? mode - 1 : mode;
  if (operation != kStrict && operation != kFilter) return;
  if (call == kPrctlSetSeccomp && operation == kFilter && !filter) return;  // asks whether it could
  __atomic_store_n(&g_sandboxed, true, __ATOMIC_SEQ_CST);
  format::FileState* shared = state() == kRecording || state() == kPaused ? file_state() : nullptr;
  if (shared) __atomic_store_n(&shared->sandboxed, 1, __ATOMIC_RELAXED);
  if (operation == kStrict) freeze();
}

extern "C" {

// What libc does, for a system on which its own cannot be found (dlsym is weak, see dynamic.h).
extern int* __errno_location(void) __attribute__((const));
static long finish_call(long result) {
  if (result >= 0 || result < -4095) return result;
  *__errno_location() = static_cast<int>(-result);
  return -1;
}
static long plain_prctl(int option, long a, long b, long c, long d) {
  return finish_call(sys(SYS_prctl, option, a, b, c, d));
}
static long plain_syscall(long number, long a, long b, long c, long d, long e, long f) {
  return finish_call(sys(number, a, b, c, d, e, f));
}

__attribute__((visibility("hidden"))) void* gpumemprof_real_prctl;
__attribute__((visibility("hidden"))) void* gpumemprof_real_syscall;

__attribute__((visibility("hidden"), used)) void gpumemprof_find_real_calls() {
  void* found = dlsym ? dlsym(RTLD_NEXT, "prctl") : nullptr;
  gpumemprof_real_prctl = found ? found : reinterpret_cast<void*>(&plain_prctl);
  found = dlsym ? dlsym(RTLD_NEXT, "syscall") : nullptr;
  gpumemprof_real_syscall = found ? found : reinterpret_cast<void*>(&plain_syscall);
}
}

__attribute__((constructor)) static void find_real_calls() { gpumemprof_find_real_calls(); }

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
          "  call gpumemprof_find_real_calls\n"                                   \
          "  popq %rax\n  popq %r9\n  popq %r8\n  popq %rcx\n  popq %rdx\n"       \
          "  popq %rsi\n  popq %rdi\n"                                            \
          "  jmp 2b\n"                                                            \
          ".size " name ", .-" name "\n")
JUMP_HOOK("prctl", "22" /* PR_SET_SECCOMP */, "gpumemprof_real_prctl");
JUMP_HOOK("syscall", "317" /* SYS_seccomp */, "gpumemprof_real_syscall");
#elif defined(__aarch64__)
// The same. The arguments are in x0 to x7, which lie on the stack around our functions; x16 is free
// for a jump.
#define CALL_KEEPING_ARGUMENTS(function)               \
  "  stp x29, x30, [sp, #-80]!\n  mov x29, sp\n"       \
  "  stp x0, x1, [sp, #16]\n  stp x2, x3, [sp, #32]\n" \
  "  stp x4, x5, [sp, #48]\n  stp x6, x7, [sp, #64]\n" \
  "  bl " function "\n"                                \
  "  ldp x6, x7, [sp, #64]\n  ldp x4, x5, [sp, #48]\n" \
  "  ldp x2, x3, [sp, #32]\n  ldp x0, x1, [sp, #16]\n" \
  "  ldp x29, x30, [sp], #80\n"
#define JUMP_HOOK(name, number, real)                                                 \
  __asm__(".text\n.globl " name "\n.type " name ",%function\n.p2align 2\n" name ":\n" \
          "  hint #34\n" /* bti c */                                                  \
          "  cmp w0, #" number "\n"                                                   \
          "  b.eq 1f\n"                                                               \
          "2:\n"                                                                      \
          "  adrp x16, " real "\n"                                                    \
          "  ldr x16, [x16, :lo12:" real "]\n"                                        \
          "  cbz x16, 3f\n"                                                           \
          "  br x16\n"                                                                \
          "1:\n" CALL_KEEPING_ARGUMENTS("gpumemprof_on_seccomp") "  b 2b\n"           \
          "3:\n" CALL_KEEPING_ARGUMENTS("gpumemprof_find_real_calls") "  b 2b\n"      \
          ".size " name ", .-" name "\n")
JUMP_HOOK("prctl", "22" /* PR_SET_SECCOMP */, "gpumemprof_real_prctl");
JUMP_HOOK("syscall", "277" /* SYS_seccomp */, "gpumemprof_real_syscall");
#endif
