// Calls what only the newest fake driver has, and takes 6 MiB: linked to it, or by the library's handle (LOOK_UP). As a
// program it does so itself, or in a library that it is given and opens at once.
#include <dlfcn.h>
#include <stdio.h>

typedef long long Digits(long, long, long, long, long, long, long, long, double, double, double, double, double, double, double,
                         double);
typedef int Of(unsigned), Second(void), Make(long*, int), Use(long), Take(unsigned long long*, unsigned long);
#ifdef LOOK_UP
#define FUNCTION(type, name) type* name = (type*)dlsym(driver, #name)
#else
Digits cuBrandNewThing;
Of cuInit;
Second cuBrandNewThing_v2;
Make cuDevicePrimaryCtxRetain;
Use cuCtxSetCurrent;
Take cuMemAlloc_v2;
#define FUNCTION(type, name) (void)0
#endif

int call_all(void) {
#ifdef LOOK_UP
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (!driver) return puts(dlerror());
#endif
  FUNCTION(Digits, cuBrandNewThing);
  FUNCTION(Of, cuInit);
  FUNCTION(Second, cuBrandNewThing_v2);
  FUNCTION(Make, cuDevicePrimaryCtxRetain);
  FUNCTION(Use, cuCtxSetCurrent);
  FUNCTION(Take, cuMemAlloc_v2);
  for (int i = 0; i < 2; ++i)
    printf("%lld %d\n", cuBrandNewThing(1, 2, 3, 4, 5, 6, 7, 8, 8, 7, 6, 5, 4, 3, 2, 1), cuBrandNewThing_v2());
  long context = 0;
  unsigned long long address = 0;
  if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context)) return 1;
  return cuMemAlloc_v2(&address, 6 << 20);
}

#ifdef PROGRAM
int main(int count, char** given) {
  if (count == 1) return call_all();
  void* library = dlopen(given[1], RTLD_NOW);
  if (!library) return puts(dlerror());
  return ((int (*)(void))dlsym(library, "call_all"))();
}
#endif
