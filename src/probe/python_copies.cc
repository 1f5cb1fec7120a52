#include "probe/python_code.h"

#include "probe/recorder.h"
#include "probe/sys.h"

namespace gpumemprof::probe {
namespace {

/// From memory that another thread may have freed: false where there is none any more.
bool copy_if_there(const char* from, void* to, size_t size) {
  if (g_sandboxed) return false;
  struct {
    const void* base;
    size_t length;
  } source{from, size}, target{to, size};
  return sys(SYS_process_vm_readv, sys(SYS_getpid), sys_ptr(&target), 1, sys_ptr(&source), 1) ==
         static_cast<long>(size);
}

}  // namespace

uint64_t begin_of_code(const char* frame, const char* code, uint64_t place) {
  const PythonLayout& layout = g_python.layout;
  const uint64_t own = reinterpret_cast<uintptr_t>(code) + layout.code_bytes;
  if (layout.code_copies == 0) return own;
  const uint64_t size = 2 * load<uint64_t>(code, layout.object_size);
  if (place + 2 - own < size + 2) return own;  // one unit before the first: not yet begun
  const auto index = load<int32_t>(frame, layout.frame_copy);
  const char* list = load<const char*>(code, layout.code_copies);
  uint64_t begin = 0;
  if (index <= 0 || !list || !copy_if_there(list + 8 + 8 * uint64_t(index), &begin, 8)) return 0;
  return place + 2 - begin < size + 2 ? begin : 0;
}

}  // namespace gpumemprof::probe
