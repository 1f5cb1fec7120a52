#include "probe/attach.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "gpumemprof/gpumemprof.h"
#include "probe/counters.h"
#include "probe/dynamic.h"
#include "probe/framework.h"
#include "probe/got.h"
#include "probe/recorder.h"
#include "probe/sys.h"

// Ours (hooks/seccomp.cc), which come before libc's only where we are preloaded.
extern "C" int prctl(int, ...);
extern "C" long syscall(long, ...);
extern "C" [[noreturn]] void _exit(int);

namespace gpumemprof::probe {

constinit Framework* g_frameworks = nullptr;

namespace {

const char* g_error = "";
uint32_t g_attached;

bool fail(const char* why) {
  __atomic_store_n(&g_error, why, __ATOMIC_RELEASE);
  return false;
}

// ---- Where we are ------------------------------------------------------------------------------

struct Place {
  char path[4096];  // of this library
  bool is_found, is_before_libc;
};

/// Objects are listed in the order in which they were loaded, preloaded ones before what the
/// program itself needs.
int find_place(dl_phdr_info* info, size_t, void* context) {
  auto* place = static_cast<Place*>(context);
  const char* name = info->dlpi_name ? info->dlpi_name : "";
  const char* slash = strrchr(name, '/');
  if (strncmp(slash ? slash + 1 : name, "libc.so", 7) == 0) return 1;
  if (!loaded_range(*info).contains(reinterpret_cast<const void*>(&find_place))) return 0;
  place->is_before_libc = true;
  return 1;
}

int find_path(dl_phdr_info* info, size_t, void* context) {
  auto* place = static_cast<Place*>(context);
  if (!loaded_range(*info).contains(reinterpret_cast<const void*>(&find_path))) return 0;
  size_t length = info->dlpi_name ? strlen(info->dlpi_name) : 0;
  if (length == 0 || length >= sizeof(place->path)) return 1;
  memcpy(place->path, info->dlpi_name, length + 1);
  place->is_found = true;
  return 1;
}

}  // namespace

bool is_preloaded() {
  static int known = -1;  // a race writes the same value twice
  if (known < 0) {
    static Place place;
    dl_iterate_phdr(find_place, &place);
    known = place.is_before_libc;
  }
  return known;
}

namespace {

/// Libraries that are loaded from now on look for symbols among those that are visible to all
/// before they look into their own needs: so they find ours.
bool become_visible_to_all() {
  static Place place;
  dl_iterate_phdr(find_path, &place);
  if (!place.is_found || !dlopen || !dlsym) return false;
  if (!dlopen(place.path, RTLD_NOLOAD | RTLD_LAZY | RTLD_GLOBAL)) return false;
  void* program = dlopen(nullptr, RTLD_LAZY);
  const Hook& ours = g_frameworks->hooks[0];
  return program && dlsym(program, ours.name) == ours.hook;
}

// ---- Recording ---------------------------------------------------------------------------------

/// Whether a folder was begun here. One that comes with the environment is that of
/// `gpumemprof run`, under which no other is meant.
bool g_is_own_folder;

bool is_same_folder(const char* a, const char* b) {
  struct stat of_a, of_b;
  return strcmp(a, b) == 0 ||
         (sys(SYS_newfstatat, AT_FDCWD, sys_ptr(a), sys_ptr(&of_a), 0) == 0 &&
          sys(SYS_newfstatat, AT_FDCWD, sys_ptr(b), sys_ptr(&of_b), 0) == 0 &&
          of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino);
}

bool fail_as_recording_elsewhere() {
  static constexpr char kWhy[] = "this process records already, into ";
  static char why[sizeof(kWhy) + sizeof(g_folder)];
  memcpy(why, kWhy, sizeof(kWhy));
  memcpy(why + sizeof(kWhy) - 1, g_folder, strlen(g_folder) + 1);
  return fail(why);
}

/// Makes the process record into `folder`. What stays off without a folder is switched on again.
bool begin_folder(const char* folder, int flags) {
  if (state() != kOff && g_is_own_folder && !is_same_folder(folder, g_folder))
    return fail_as_recording_elsewhere();
  if (state() == kRecording || state() == kPaused) return true;
  size_t length = strlen(folder);
  if (folder[0] != '/') return fail("the folder's name must be absolute");
  if (length >= sizeof(g_folder)) return fail("the folder's name is too long");
  if (g_folder[0] && (state() == kUnset || state() == kOpening)) {
    return begin_recording() || fail("no recording can be made in the folder");
  }
  if (g_folder[0]) return fail("this process has already tried to record and could not");
  long error = sys(SYS_mkdirat, AT_FDCWD, sys_ptr(folder), 0700);
  if (error < 0 && error != -EEXIST) return fail("the folder cannot be made");
  static constexpr uint32_t kModes[] = {format::kStacksPython, format::kStacksNative,
                                        format::kStacksBoth, format::kStacksNone};
  g_config.stacks = kModes[flags & 3];
  g_config.no_cpu = flags & GPUMEMPROF_ATTACH_NO_CPU;
  g_config.free_stacks = flags & GPUMEMPROF_ATTACH_FREE_STACKS;
  g_config.no_attribution = flags & GPUMEMPROF_ATTACH_NO_ATTRIBUTION;
  // The first letter last: another thread's event looks at it.
  memcpy(g_folder + 1, folder + 1, length);
  g_is_own_folder = true;
  __atomic_store_n(&g_folder[0], folder[0], __ATOMIC_RELEASE);
  uint32_t off = kOff;
  __atomic_compare_exchange_n(g_state, &off, kUnset, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
  return begin_recording() || fail("no recording can be made in the folder");
}

// ---- All of it ---------------------------------------------------------------------------------

constexpr uint32_t kMostHooks = 64;

/// The hooks of the loaded frameworks whose real functions are there, `is_alloc` or the others.
uint32_t take_hooks(Replacement* table, uint32_t count, bool is_alloc) {
  for (const Framework* f = g_frameworks; f; f = f->next) {
    for (uint32_t i = 0; i < f->hook_count && count < kMostHooks; ++i) {
      const Hook& hook = f->hooks[i];
      // The real functions first: a hook may be called at the moment at which an entry leads to it.
      if (hook.is_alloc == is_alloc && hook.find_real()) table[count++] = {hook.name, hook.hook, 0};
    }
  }
  return count;
}

/// Whether any entry leads to `framework`'s first function, where that is loaded.
bool is_called(const Framework& framework, const Replacement* table, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    if (table[i].hook == framework.hooks[0].hook) return table[i].count != 0;
  }
  return true;
}

/// Changes the tables of what is loaded. False: see g_error.
bool replace_all() {
  Replacement table[kMostHooks + 3];
  uint32_t allocs = take_hooks(table, 0, true);
  uint32_t count = take_hooks(table, allocs, false);
  // So that we make no system call that the program forbids itself: counting makes some too.
  table[count++] = {"prctl", reinterpret_cast<void*>(&prctl), 0};
  table[count++] = {"syscall", reinterpret_cast<void*>(&syscall), 0};
  table[count++] = {"_exit", reinterpret_cast<void*>(&_exit), 0};
  // Frees before allocations, which come first in the table: else a block that another thread makes
  // and drops just now would be counted and its free not seen. Then all once more: a first call
  // through an entry may have filled it meanwhile.
  const Replaced results[] = {replace_in_loaded_objects(table + allocs, count - allocs),
                              replace_in_loaded_objects(table, count),
                              replace_in_loaded_objects(table, count)};
  for (const Replaced& result : results) {
    if (result.refused) return fail("the kernel refuses to make a library's table writable");
    if (result.is_protection_lost) {
      return fail("the kernel refuses to make a library's table read-only again");
    }
  }
  for (const Framework* f = g_frameworks; f; f = f->next) {
    if (!is_called(*f, table, count)) return fail(f->not_called);
  }
  return true;
}

bool is_loaded(const Framework& framework) { return framework.hooks[0].find_real() != nullptr; }

bool attach_once(const char* folder, int flags) {
  if (is_preloaded()) return !folder || begin_folder(folder, flags);
  if (!begin_counting())
    return fail("exact counting is not possible: kernel before 4.14, or no memory");
  bool is_visible = become_visible_to_all();
  if (folder && !begin_folder(folder, flags)) return false;
  bool any = false;
  for (const Framework* f = g_frameworks; f; f = f->next) any |= is_loaded(*f);
  if (!any && !is_visible) {
    return fail("none of PyTorch, TensorFlow and JAX is loaded: import one of them first");
  }
  if (any && !replace_all()) return false;
  for (const Framework* f = g_frameworks; f; f = f->next) {
    if (is_loaded(*f) && f->ask() == 0) return fail(f->not_arrived);
  }
  __atomic_store_n(&g_attached, 1, __ATOMIC_RELEASE);
  return true;
}

}  // namespace

bool hooks_are_in_place() {
  return __atomic_load_n(&g_attached, __ATOMIC_ACQUIRE) || is_preloaded();
}

bool attach(const char* folder, int flags) {
  if (g_sandboxed) {  // not one system call; what is in place stays
    return (!folder && hooks_are_in_place()) ||
           fail("the program has restricted its own system calls");
  }
  // The PID of who attaches, so that a child forked meanwhile does not wait for its parent's
  // thread.
  static uint32_t attaching;
  uint32_t mine = static_cast<uint32_t>(sys(SYS_getpid));
  uint32_t who = 0;
  while (!__atomic_compare_exchange_n(&attaching, &who, mine, false, __ATOMIC_ACQ_REL,
                                      __ATOMIC_ACQUIRE)) {
    if (who == mine) return fail("another thread is attaching");
  }
  bool done = attach_once(folder, flags);
  if (done) g_error = "";
  __atomic_store_n(&attaching, 0, __ATOMIC_RELEASE);
  return done;
}

const char* attach_error() { return __atomic_load_n(&g_error, __ATOMIC_ACQUIRE); }

}  // namespace gpumemprof::probe
