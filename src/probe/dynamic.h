// dlopen and friends by the version they had before glibc 2.34 moved them into libc, so that a
// library built on a new system loads on an old one (2.28).
#pragma once

#include <dlfcn.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>

// Weak: before 2.34 they are in libdl, which a program without plugins has not loaded; then there
// is no torch either.
#pragma weak dlsym
#pragma weak dlopen
#if !__GLIBC_PREREQ(2, 34)
// Built for such a system, they have that version, or none where libdl is not linked.
#elif defined(__x86_64__)
__asm__(".symver dlsym,dlsym@GLIBC_2.2.5");
__asm__(".symver dlopen,dlopen@GLIBC_2.2.5");
#elif defined(__aarch64__)
__asm__(".symver dlsym,dlsym@GLIBC_2.17");
__asm__(".symver dlopen,dlopen@GLIBC_2.17");
#endif

namespace gpumemprof::probe {

/// The definition of `name` that the program would have used without the probe. Searches every
/// loaded object, because torch._C is often opened RTLD_LOCAL, which RTLD_NEXT skips; objects whose
/// file name contains `hint` come first. Null if there is none. Takes the loader's lock: call it
/// once per symbol, not per event.
void* find_real(const char* name, const void* ours, const char* hint);

/// The definition of `name` in the object that contains `address`, otherwise in one of its
/// dependencies. Null if there is none, or only `ours`. Like find_real, not for every event.
void* find_real_of(const void* address, const char* name, const void* ours);

/// Whether the file name of the object that contains `address` contains `part`.
bool object_is_named(const void* address, const char* part);

/// The address range of the object that contains `address`, or an empty one.
struct ObjectRange {
  uintptr_t begin = 0, end = 0;
  bool contains(const void* p) const {
    uintptr_t a = reinterpret_cast<uintptr_t>(p);
    return a >= begin && a < end;
  }
};
ObjectRange object_of(const void* address);
/// From its first loaded segment to its last.
ObjectRange loaded_range(const dl_phdr_info& info);

}  // namespace gpumemprof::probe
