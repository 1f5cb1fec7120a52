// One entry for each function of the driver that is only forwarded: a jump through a slot. A slot
// holds at first a stub that looks the real function up, for nothing may be opened in a program
// that does not use the driver.
//
// functions.inc is made from functions.txt at build time: FUNCTION(number, name) for each line.
#include "driver_proxy/real.h"

extern "C" {
/// Called by the stubs with the number of the function; the answer is where to jump.
__attribute__((visibility("hidden"), used)) void* gpumemprof_driver_resolve(uint64_t number);
extern __attribute__((visibility("hidden"))) void* gpumemprof_driver_slots[];
}

namespace {

const char* const kNames[] = {
#define FUNCTION(number, name) #name,
#include "functions.inc"
#undef FUNCTION
};

/// Of a function that this driver does not have.
int missing() { return gpumemprof::driver_proxy::kNotFound; }

}  // namespace

void* gpumemprof_driver_resolve(uint64_t number) {
  void* found = gpumemprof::driver_proxy::real_function(kNames[number]);
  if (!found) found = reinterpret_cast<void*>(&missing);
  __atomic_store_n(&gpumemprof_driver_slots[number], found, __ATOMIC_RELAXED);
  return found;
}

#if defined(__x86_64__)
#define FUNCTION(number, name)                                                                   \
  __asm__(".text\n.globl " #name "\n.type " #name ",@function\n.p2align 4\n" #name               \
          ":\n  endbr64\n  jmp *gpumemprof_driver_slots+8*" #number                              \
          "(%rip)\n"                                                                             \
          ".Llazy" #number ":\n  pushq $" #number "\n  jmp gpumemprof_driver_lazy\n.size " #name \
          ",.-" #name "\n");
#include "functions.inc"
#undef FUNCTION
// All registers in which arguments can be are kept; the stack is at a multiple of 16 for the call.
__asm__(
    ".text\n.type gpumemprof_driver_lazy,@function\n.p2align 4\ngpumemprof_driver_lazy:\n"
    "  pushq %rbp\n  movq %rsp, %rbp\n"
    "  pushq %rdi\n  pushq %rsi\n  pushq %rdx\n  pushq %rcx\n  pushq %r8\n  pushq %r9\n  pushq "
    "%rax\n"
    "  subq $128, %rsp\n"
    "  movups %xmm0, (%rsp)\n  movups %xmm1, 16(%rsp)\n  movups %xmm2, 32(%rsp)\n  movups %xmm3, "
    "48(%rsp)\n"
    "  movups %xmm4, 64(%rsp)\n  movups %xmm5, 80(%rsp)\n  movups %xmm6, 96(%rsp)\n  movups %xmm7, "
    "112(%rsp)\n"
    "  movq 8(%rbp), %rdi\n  call gpumemprof_driver_resolve\n  movq %rax, %r11\n"
    "  movups (%rsp), %xmm0\n  movups 16(%rsp), %xmm1\n  movups 32(%rsp), %xmm2\n  movups "
    "48(%rsp), %xmm3\n"
    "  movups 64(%rsp), %xmm4\n  movups 80(%rsp), %xmm5\n  movups 96(%rsp), %xmm6\n  movups "
    "112(%rsp), %xmm7\n"
    "  addq $128, %rsp\n"
    "  popq %rax\n  popq %r9\n  popq %r8\n  popq %rcx\n  popq %rdx\n  popq %rsi\n  popq %rdi\n"
    "  popq %rbp\n  addq $8, %rsp\n  jmp *%r11\n"
    ".size gpumemprof_driver_lazy,.-gpumemprof_driver_lazy\n");
#elif defined(__aarch64__)
#define FUNCTION(number, name)                                                                 \
  __asm__(".text\n.globl " #name "\n.type " #name ",%function\n.p2align 4\n" #name             \
          ":\n  hint #34\n  adrp x16, gpumemprof_driver_slots+8*" #number                      \
          "\n  add x16, x16, :lo12:gpumemprof_driver_slots+8*" #number                         \
          "\n  ldr x16, [x16]\n  br x16\n.Llazy" #number ":\n  hint #34\n  mov x17, #" #number \
          "\n  b gpumemprof_driver_lazy\n.size " #name ",.-" #name "\n");
#include "functions.inc"
#undef FUNCTION
__asm__(
    ".text\n.type gpumemprof_driver_lazy,%function\n.p2align 4\ngpumemprof_driver_lazy:\n"
    "  stp x29, x30, [sp, #-208]!\n  mov x29, sp\n"
    "  stp x0, x1, [sp, #16]\n  stp x2, x3, [sp, #32]\n  stp x4, x5, [sp, #48]\n  stp x6, x7, [sp, "
    "#64]\n"
    "  stp q0, q1, [sp, #80]\n  stp q2, q3, [sp, #112]\n  stp q4, q5, [sp, #144]\n  stp q6, q7, "
    "[sp, #176]\n"
    "  mov x0, x17\n  bl gpumemprof_driver_resolve\n  mov x16, x0\n"
    "  ldp q6, q7, [sp, #176]\n  ldp q4, q5, [sp, #144]\n  ldp q2, q3, [sp, #112]\n  ldp q0, q1, "
    "[sp, #80]\n"
    "  ldp x6, x7, [sp, #64]\n  ldp x4, x5, [sp, #48]\n  ldp x2, x3, [sp, #32]\n  ldp x0, x1, [sp, "
    "#16]\n"
    "  ldp x29, x30, [sp], #208\n  br x16\n"
    ".size gpumemprof_driver_lazy,.-gpumemprof_driver_lazy\n");
#else
#error "the driver's stand-in knows x86-64 and arm64"
#endif

__asm__(
    ".section .data.gpumemprof_slots,\"aw\"\n.p2align 3\n.globl gpumemprof_driver_slots\n"
    ".hidden gpumemprof_driver_slots\ngpumemprof_driver_slots:\n");
#define FUNCTION(number, name) __asm__(".quad .Llazy" #number "\n");
#include "functions.inc"
#undef FUNCTION
__asm__(".text\n");
