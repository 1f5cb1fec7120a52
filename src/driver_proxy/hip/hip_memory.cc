// HIP's run time: device memory, the host's, other processes', modules.
#include "driver_proxy/hip/hip_functions.h"
#include "driver_proxy/watch.h"

using namespace gpumemprof::driver_proxy;
using namespace gpumemprof::probe;

namespace {

/// An argument as it lies in a register, whatever its type: all of the table's functions have at
/// most six, and none on the stack. What a shorter one leaves in the rest passes unchanged.
using Word = uint64_t;

constexpr uint32_t kHipMemory =
    1u << kDriverMemory | 1u << kDriverInPools | 1u << kDriverManaged | 1u << kDriverPinned;

/// 0 bytes are no block, though the call succeeds.
void took_block(Watch& watch, Result code, DriverKind kind, Word out, Word bytes) {
  const auto* key = reinterpret_cast<const Pointer*>(out);
  if (code == kSuccess && (!key || !*key)) return;
  watch.took(code, kind, key, bytes);
}

}  // namespace

#define TAKES(name, kind, out, size)                                                \
  DRIVER_EXPORT Result name(Word a0, Word a1, Word a2, Word a3, Word a4, Word a5) { \
    WATCH();                                                                        \
    const Word words[] = {a0, a1, a2, a3, a4, a5};                                  \
    const Result code = CALL_REAL(name, a0, a1, a2, a3, a4, a5);                    \
    took_block(watch, code, kind, words[out], words[size]);                         \
    return code;                                                                    \
  }
#define GIVES(name, kinds, which)                                                   \
  DRIVER_EXPORT Result name(Word a0, Word a1, Word a2, Word a3, Word a4, Word a5) { \
    WATCH();                                                                        \
    const Word words[] = {a0, a1, a2, a3, a4, a5};                                  \
    watch.gives(kinds, words[which]);                                               \
    const Result code = CALL_REAL(name, a0, a1, a2, a3, a4, a5);                    \
    watch.gave(code);                                                               \
    return code;                                                                    \
  }
#define LOADS(name)                                                                 \
  DRIVER_EXPORT Result name(Word a0, Word a1, Word a2, Word a3, Word a4, Word a5) { \
    WATCH();                                                                        \
    const Bracket bracket(watch);                                                   \
    const Result code = CALL_REAL(name, a0, a1, a2, a3, a4, a5);                    \
    took_module(watch, bracket, code, reinterpret_cast<const Pointer*>(a0));        \
    return code;                                                                    \
  }
HIP_RECORDED(TAKES, GIVES, LOADS)
#undef TAKES
#undef GIVES
#undef LOADS

DRIVER_CALL(hipMallocPitch, (void** out, size_t* pitch, size_t width, size_t height),
            (out, pitch, width, height),
            took_block(watch, code, kDriverMemory, reinterpret_cast<Word>(out),
                       (code == kSuccess ? *pitch : width) * height))

DRIVER_CALL(hipMemAllocPitch,
            (void** out, size_t* pitch, size_t width, size_t height, unsigned element),
            (out, pitch, width, height, element),
            took_block(watch, code, kDriverMemory, reinterpret_cast<Word>(out),
                       (code == kSuccess ? *pitch : width) * height))

/// The address is the program's own.
DRIVER_CALL(hipHostRegister, (void* address, size_t bytes, unsigned flags), (address, bytes, flags),
            watch.took(code, kDriverRegistered, reinterpret_cast<const Pointer*>(&address), bytes,
                       0))

DRIVER_CALL(hipMemGetInfo, (size_t* free, size_t* total), (free, total),
            if (code == kSuccess) watch.level_used())

/// hipIpcMemHandle_t: 64 bytes, handed over by value.
struct HipIpcHandle {
  char bytes[64];
};

DRIVER_EXPORT Result hipIpcOpenMemHandle(void** out, HipIpcHandle handle, unsigned flags) {
  WATCH();
  const Result code = CALL_REAL(hipIpcOpenMemHandle, out, handle, flags);
  if (!watch.is_on() || code != kSuccess) return code;
  const KeepErrno keep;
  size_t bytes = 0;
  void* base = nullptr;
  if (ASK_REAL(Result(void**, size_t*, void*), hipMemGetAddressRange, &base, &bytes, *out) !=
      kSuccess) {
    bytes = 0;
    watch->lost();
  }
  watch.took(code, kDriverImported, reinterpret_cast<const Pointer*>(out), bytes);
  return code;
}
