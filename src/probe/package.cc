#include "probe/package.h"

#include "probe/dynamic.h"
#include "probe/python_frames.h"

namespace gpumemprof::probe {

char g_package[1024];
uint32_t g_is_package_wanted;

namespace {

/// Imports nothing that the program may not have: the modules of the import system itself are
/// frozen. An error of ours is dropped; what a signal handler of the program's raises is not, by the
/// rule of _core/signal_errors.py, which is not loaded yet.
constexpr const char kLoad[] = R"(
import sys
def is_importing(name):
    return getattr(getattr(sys.modules.get(name), "__spec__", None), "_initializing", False)
def load():
    import _frozen_importlib, _frozen_importlib_external
    inside = folder + "/" + name
    spec = _frozen_importlib_external.spec_from_file_location(
        name, inside + "/__init__.py", submodule_search_locations=[inside])
    module = sys.modules[name] = _frozen_importlib.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
def is_of_a_handler(trace):
    getsignal = sys.modules["_signal"].getsignal
    handlers = [getsignal(number) for number in range(1, 65)]
    functions = [getattr(one, "__func__", one) for one in handlers if callable(one)]
    codes = [getattr(one, "__code__", None) or getattr(type(one).__call__, "__code__", None)
             for one in functions]
    while trace is not None and trace.tb_frame.f_code not in codes:
        trace = trace.tb_next
    return trace is not None
name, again = "_gpumemprof_recorded", False
try:
    again = any(map(is_importing, ("torch", "tensorflow", "keras", "jax")))
    if not again and name not in sys.modules:
        load()
except Exception as error:
    if is_of_a_handler(error.__traceback__):
        raise
)";

constexpr int kFileInput = 257;  // Py_file_input (Include/compile.h)

/// Of the stable ABI. Objects are opaque; a reference that is not given back is lost.
struct Api {
  void* (*new_dict)();
  void* (*builtins)();
  void* (*decode)(const char*);
  int (*set)(void*, const char*, void*);
  void* (*get)(void*, const char*);
  void* (*compile)(const char*, const char*, int);
  void* (*evaluate)(void*, void*, void*);
  int (*is_true)(void*);
  void (*clear)();
  void (*release)(void*);
  int (*schedule)(int (*)(void*), void*);
};
Api g_api;

template <typename F>
bool find(const char* name, F* function) {
  *function = reinterpret_cast<F>(dlsym(RTLD_DEFAULT, name));
  return *function != nullptr;
}

bool find_api() {
  Api& a = g_api;
  return dlsym && find("PyDict_New", &a.new_dict) && find("PyEval_GetBuiltins", &a.builtins) &&
         find("PyUnicode_DecodeFSDefault", &a.decode) && find("PyDict_SetItemString", &a.set) &&
         find("PyDict_GetItemString", &a.get) && find("Py_CompileString", &a.compile) &&
         find("PyEval_EvalCode", &a.evaluate) && find("PyObject_IsTrue", &a.is_true) &&
         find("PyErr_Clear", &a.clear) && find("Py_DecRef", &a.release) &&
         find("Py_AddPendingCall", &a.schedule);
}

void want_again() { __atomic_store_n(&g_is_package_wanted, 1, __ATOMIC_RELEASE); }

/// Compiled once and never released: a profiler of the program's may keep pointers to its names, as
/// torch.profiler does until it writes its trace.
void* compiled() {
  static void* code;
  if (!code) code = g_api.compile(kLoad, "<gpumemprof>", kFileInput);
  return code;
}

/// 0, or -1 with an exception of the program's set.
int run_in(void* globals) {
  void* folder = g_api.decode(g_package);
  void* code = folder ? compiled() : nullptr;
  const bool is_ready = code && g_api.set(globals, "__builtins__", g_api.builtins()) == 0 &&
                        g_api.set(globals, "folder", folder) == 0;
  void* result = is_ready ? g_api.evaluate(code, globals, globals) : nullptr;
  if (!is_ready) g_api.clear();
  if (result) {
    void* again = g_api.get(globals, "again");
    if (again && g_api.is_true(again) == 1) want_again();
    g_api.release(result);
  }
  if (folder) g_api.release(folder);
  return is_ready && !result ? -1 : 0;
}

/// Called by the interpreter, with the GIL.
int load(void*) {
  void* globals = g_api.new_dict();
  if (!globals) {
    g_api.clear();
    return 0;
  }
  const int outcome = run_in(globals);
  g_api.release(globals);
  return outcome;
}

}  // namespace

void load_package() {
  if (!__atomic_exchange_n(&g_is_package_wanted, 0, __ATOMIC_ACQ_REL)) return;
  if (!g_api.schedule && !find_api()) return;
  if (g_api.schedule(load, nullptr) != 0) want_again();
}

}  // namespace gpumemprof::probe
