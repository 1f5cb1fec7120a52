// The entry of the one _native of a wheel: its bindings are compiled for each version of CPython
// (cmake/pythons.cmake), and this passes on to those of the version that runs.
#include <cstdlib>

extern "C" {

const char* Py_GetVersion();
void* gpumemprof_init_39();
void* gpumemprof_init_310();
void* gpumemprof_init_311();
void* gpumemprof_init_312();  // and newer: the stable ABI

__attribute__((visibility("default"))) void* PyInit__native() {
  switch (std::atoi(Py_GetVersion() + sizeof("3.") - 1)) {
    case 9: return gpumemprof_init_39();
    case 10: return gpumemprof_init_310();
    case 11: return gpumemprof_init_311();
    default: return gpumemprof_init_312();
  }
}

}  // extern "C"
