#include "probe/watched_code.h"

#include <string.h>

#include "probe/code_identity.h"
#include "probe/hot.h"
#include "probe/python_code.h"
#include "probe/python_frames.h"
#include "probe/surroundings.h"

namespace gpumemprof::probe {

HOT_DATA constinit const View* g_view = nullptr;

namespace {

constinit WatchedCodes g_none{};
/// Each is written once and then published. There are as many changes as watched functions, and
/// again where a program loads a framework's modules anew.
constexpr uint32_t kMostVersions = 64;
constinit WatchedCodes g_versions[kMostVersions]{};
constinit uint32_t g_next;

bool is_named(const PythonLayout& layout, const char* code, const char* name) {
  const void* text = load<const void*>(code, layout.code_qualname);
  if (layout.packs_place()) {  // before 3.11 a code object has a name without its class
    const char* dot = strrchr(name, '.');
    name = dot ? dot + 1 : name;
  }
  const size_t length = strlen(name);
  if (!text || load<uint64_t>(text, layout.str_length) != length) return false;
  char own[128];
  return length <= sizeof(own) && python_string(layout, text, own, sizeof(own)) == length &&
         memcmp(own, name, length) == 0;
}

bool is_from(const PythonLayout& layout, const char* code, const char* file_end) {
  char path[4096];
  const size_t n =
      python_string(layout, load<const void*>(code, layout.code_filename), path, sizeof(path));
  const size_t length = strlen(file_end);
  return n >= length && memcmp(path + n - length, file_end, length) == 0;
}

/// The places of the code's instructions.
CodeRange places_of(const char* code) {
  const PythonLayout& layout = g_python.layout;
  if (layout.packs_place()) {
    const char* bytes = load<const char*>(code, layout.code_bytes);
    return {packed_places(code), load<uint64_t>(bytes, layout.bytes_size)};
  }
  return {reinterpret_cast<uintptr_t>(code) + layout.code_bytes,
          2 * load<uint64_t>(code, layout.object_size)};
}

/// The frame that called this one, without those of the interpreter itself.
const char* caller_of(const char* frame) {
  const PythonLayout& layout = g_python.layout;
  do frame = load<const char*>(frame, layout.frame_previous);
  while (frame && load<uint8_t>(frame, layout.frame_owner) >= layout.skip_owner);
  return frame;
}

/// Publishes what `change` makes of the present one; nothing where it answers false.
template <class Change>
void publish(Change change) {
  const WatchedCodes* now = watched_codes();
  WatchedCodes* place = nullptr;
  for (;;) {
    WatchedCodes next = *now;
    if (!change(&next)) return;
    if (!place) {
      const uint32_t index = __atomic_fetch_add(&g_next, 1, __ATOMIC_RELAXED);
      if (index >= kMostVersions) {
        __atomic_store_n(&g_next, kMostVersions, __ATOMIC_RELAXED);  // it must not run over
        __atomic_store_n(&g_watched, &g_none, __ATOMIC_RELEASE);     // unknown, never wrong
        return;
      }
      place = &g_versions[index];
    }
    *place = next;
    if (__atomic_compare_exchange_n(&g_watched, &now, place, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE)) {
      return;
    }
  }
}

void watch(const char* code, bool is_entry) {
  know_code(code);  // so that its death is told
  const auto key = reinterpret_cast<uintptr_t>(code);
  const CodeRange range = places_of(code);
  publish([&](WatchedCodes* next) {
    if (!is_entry) {
      if (next->call_code == key) return false;
      next->call = range, next->call_code = key;
      return true;
    }
    for (uint32_t i = 0; i < kMostEntries; ++i) {
      if (next->entry_codes[i] == key) return false;
      if (next->entry_codes[i]) continue;
      next->entries[i] = range, next->entry_codes[i] = key;
      return true;
    }
    return false;
  });
}

bool is_watched(const WatchedCodes& codes, uint64_t code) {
  bool found = codes.call_code == code;
  for (uint64_t entry : codes.entry_codes) found |= entry == code;
  return found;
}

}  // namespace

HOT_DATA constinit const WatchedCodes* g_watched = &g_none;

void consider_frame(const char* frame) {
  if (!g_view) return;
  const PythonLayout& layout = g_python.layout;
  const char* code = code_of(frame);
  if (!code || is_watched(*watched_codes(), reinterpret_cast<uintptr_t>(code))) return;
  for (uint32_t i = 0; i < g_view->function_count; ++i) {
    const WatchedFunction& wanted = g_view->functions[i];
    if (!is_named(layout, code, wanted.qualname) || !is_from(layout, code, wanted.file_end)) {
      continue;
    }
    const char* caller = wanted.not_called_by ? caller_of(frame) : nullptr;
    const char* outer = caller ? code_of(caller) : nullptr;
    if (outer && is_named(layout, outer, wanted.not_called_by)) return;
    watch(code, wanted.is_entry);
    return;
  }
}

void forget_watched(const void* code) {
  const auto key = reinterpret_cast<uintptr_t>(code);
  if (!is_watched(*watched_codes(), key)) return;
  publish([&](WatchedCodes* next) {
    if (next->call_code == key) next->call = {}, next->call_code = 0;
    for (uint32_t i = 0; i < kMostEntries; ++i) {
      if (next->entry_codes[i] == key) next->entries[i] = {}, next->entry_codes[i] = 0;
    }
    return true;
  });
}

/// The cell of the first argument in 3.9 and 3.10, which take the argument out of its own place.
static const char* cell_of_argument(const char* frame) {
  const PythonLayout& layout = g_python.layout;
  const char* code = code_of(frame);
  const char* arguments = load<const char*>(code, layout.code_cell_arguments);
  if (!arguments) return nullptr;
  const auto cells = load<uint64_t>(load<const char*>(code, layout.code_cells), layout.object_size);
  const auto locals = load<uint32_t>(code, layout.code_local_count);
  for (uint32_t i = 0; i < cells && i < 256; ++i) {
    if (load<int64_t>(arguments, 8 * i) != 0) continue;
    return load<const char*>(frame, layout.frame_locals + 8 * (locals + i));
  }
  return nullptr;
}

HOT const void* receiver_of(const char* frame, const void** type) {
  const PythonLayout& layout = g_python.layout;
  // Without a GIL modules are not known (docs/attribution.md).
  if (layout.places == PlaceKind::kWithCode) return nullptr;
  // 3.14 marks in the lowest two bits who holds the reference; objects lie at multiples of 8.
  auto* object =
      reinterpret_cast<const char*>(load<uintptr_t>(frame, layout.frame_locals) & ~uintptr_t{3});
  if (!object && layout.packs_place()) object = cell_of_argument(frame);
  if (!object) return nullptr;
  *type = load<const void*>(object, layout.object_type);
  if (*type != g_python.cell_type) return object;
  // A function that an inner function shares its argument with has it in a cell.
  object = load<const char*>(object, layout.object_size);
  if (object) *type = load<const void*>(object, layout.object_type);
  return object;
}

}  // namespace gpumemprof::probe
