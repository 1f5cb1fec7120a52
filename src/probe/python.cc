// Finds the interpreter of this process, if there is one.
#include "probe/code_identity.h"
#include "probe/dynamic.h"
#include "probe/hot.h"
#include "probe/python_frames.h"
#include "probe/recorder.h"

namespace gpumemprof::probe {

HOT_LINES constinit Python g_python{};

namespace {

/// "3.11.7 (main, …" -> 3, 11, 7.
bool parse_version(const char* text, uint32_t out[3]) {
  for (int i = 0; i < 3; ++i) {
    if (*text < '0' || *text > '9') return false;
    out[i] = 0;
    while (*text >= '0' && *text <= '9')
      out[i] = out[i] * 10 + static_cast<uint32_t>(*text++ - '0');
    if (*text == '.') ++text;
  }
  return true;
}

void* symbol(const char* name) { return dlsym ? dlsym(RTLD_DEFAULT, name) : nullptr; }

format::PythonState find_python(uint32_t version[3]) {
  auto* get_version = reinterpret_cast<const char* (*)()>(symbol("Py_GetVersion"));
  if (!get_version) return format::kPythonAbsent;
  if (!parse_version(get_version(), version)) return format::kPythonUnknownVersion;
  PythonLayout layout{};
  if (!python_layout(version[0], version[1], static_cast<const uint64_t*>(symbol("_PyRuntime")),
                     &layout)) {
    return format::kPythonUnknownVersion;
  }
  void* finalizing = symbol("Py_IsFinalizing");
  if (!finalizing) finalizing = symbol("_Py_IsFinalizing");
  void* thread_state = symbol("PyGILState_GetThisThreadState");
  if (!thread_state || !finalizing || !watch_code_objects(symbol("PyCode_Type"), layout.object_size + 8)) {
    return format::kPythonUnknownVersion;
  }
  g_python.layout = layout;
  g_python.cell_type = symbol("PyCell_Type");
  g_python.this_thread_state = reinterpret_cast<void* (*)()>(thread_state);
  g_python.is_finalizing = reinterpret_cast<int (*)()>(finalizing);
  return format::kPythonOk;
}

}  // namespace

void prepare_python() {
  auto* shared = file_state();
  if (!shared) return;
  if (!(g_config.stacks & format::kStacksPython)) {
    __atomic_store_n(&shared->python_state, format::kPythonNotAsked, __ATOMIC_RELAXED);
    return;
  }
  // Several threads may be here; all of them find the same.
  uint32_t version[3] = {};
  format::PythonState found = find_python(version);
  __atomic_store_n(&shared->python_version, version[0] << 16 | version[1] << 8 | version[2],
                   __ATOMIC_RELAXED);
  __atomic_store_n(&shared->python_state, found, __ATOMIC_RELAXED);
  __atomic_store_n(&g_python.ready, found == format::kPythonOk, __ATOMIC_RELEASE);
}

}  // namespace gpumemprof::probe
