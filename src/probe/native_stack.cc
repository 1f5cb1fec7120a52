#include "probe/native_stack.h"

#include <string.h>
#include <sys/stat.h>

#include "probe/recorder.h"
#include "probe/sys.h"

namespace gpumemprof::probe {
namespace {

int (*g_unw_backtrace)(void**, int);

// libunwind keeps a pipe, through which it tests whether memory can be read. A program that closes
// all descriptors may then open its own under these numbers, and libunwind would write into them:
// so they are looked at before every walk (two fstat), and native stacks end when they are not what
// they were.
struct Descriptor {
  int fd;
  uint64_t inode;
};
Descriptor g_pipe[2];
bool g_ended;
constexpr int kMostDescriptors = 256;

/// The inode behind a pipe's descriptor; 0 for anything else.
uint64_t pipe_inode(int fd) {
  struct stat st;
  if (sys(SYS_fstat, fd, sys_ptr(&st)) < 0 || !S_ISFIFO(st.st_mode)) return 0;
  return st.st_ino;
}

/// Walks once, and notes which pipe came to be meanwhile.
void find_pipe() {
  uint64_t before[kMostDescriptors];
  for (int fd = 0; fd < kMostDescriptors; ++fd) before[fd] = pipe_inode(fd);
  void* frames[4];
  g_unw_backtrace(frames, 4);
  int found = 0;
  for (int fd = 0; fd < kMostDescriptors && found < 2; ++fd) {
    uint64_t inode = pipe_inode(fd);
    if (inode != 0 && inode != before[fd]) g_pipe[found++] = {fd, inode};
  }
}

bool pipe_is_there() {
  for (const Descriptor& end : g_pipe) {
    if (end.inode != 0 && pipe_inode(end.fd) != end.inode) return false;
  }
  return true;
}

ObjectRange g_own;  // our own frames, which no stack shows

struct ModuleQuery {
  uintptr_t pc;
  Module* out;
};

int match_module(dl_phdr_info* info, size_t, void* context) {
  auto* query = static_cast<ModuleQuery*>(context);
  ObjectRange range = loaded_range(*info);
  if (!range.contains(reinterpret_cast<const void*>(query->pc))) return 0;
  query->out->begin = range.begin;
  query->out->end = range.end;
  query->out->bias = info->dlpi_addr;
  const char* name = info->dlpi_name ? info->dlpi_name : "";
  size_t length = strnlen(name, sizeof(query->out->path) - 1);
  memcpy(query->out->path, name, length);
  query->out->path[length] = 0;
  return 1;
}

}  // namespace

constinit ObjectRange g_host_library{};  // told before our initialisers run

void prepare_native() {
  auto* shared = file_state();
  if (!shared || !(g_config.stacks & format::kStacksNative)) return;
  if (!g_unw_backtrace && dlopen && dlsym) {
    void* library = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);
    if (library) {
      g_unw_backtrace = reinterpret_cast<int (*)(void**, int)>(dlsym(library, "unw_backtrace"));
    }
  }
  if (g_unw_backtrace && g_pipe[0].inode == 0) find_pipe();
  g_own = object_of(reinterpret_cast<void*>(&prepare_native));
  __atomic_store_n(&shared->native_state,
                   g_unw_backtrace ? format::kNativeOk : format::kNativeNoLibunwind,
                   __ATOMIC_RELAXED);
}

int native_backtrace(void** out, int max) {
  if (!g_unw_backtrace || g_sandboxed) return 0;
  if (!pipe_is_there()) {
    g_unw_backtrace = nullptr;
    g_ended = true;
    return 0;
  }
  int count = g_unw_backtrace(out, max), own = 0;
  while (own < count && (g_own.contains(out[own]) || g_host_library.contains(out[own]))) ++own;
  if (own > 0 && count > own)
    memmove(out, out + own, static_cast<size_t>(count - own) * sizeof(*out));
  return count - own;
}

bool native_has_ended() { return g_ended; }

bool find_module(uintptr_t pc, Module* out) {
  ModuleQuery query{pc, out};
  if (!dl_iterate_phdr(match_module, &query)) return false;
  if (!out->path[0] && !g_sandboxed) {  // the program itself has no name there
    long n = sys(SYS_readlinkat, -100 /* AT_FDCWD */, sys_ptr("/proc/self/exe"), sys_ptr(out->path),
                 sizeof(out->path) - 1);
    out->path[n > 0 ? n : 0] = 0;
  }
  return true;
}

}  // namespace gpumemprof::probe
