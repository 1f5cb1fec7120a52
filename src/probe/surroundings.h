// A framework's context of an event that the stack does not show: the object whose method is being
// called, the running work, its mode. It becomes frames without a line at the inner end of the
// stack, so events are not larger and a name is written once.
//
// A framework's hooks enter a View. Nothing else in the probe knows the meaning of the words.
#pragma once

#include <stdint.h>

namespace gpumemprof::probe {

/// The context as words, hashed with the frames of every event: no texts and no look-ups.
struct Surroundings {
  const void* receiver = nullptr;  // first argument of the innermost call that is watched
  const void* receiver_type = nullptr;
  uint32_t module = 0;      // number (modules.h) noted for the work that runs here; 0: none
  bool is_in_work = false;  // a piece of work runs on the thread: see WatchedFunction::is_entry
  uint64_t words[2] = {};   // the framework's own

  bool any() const { return receiver || module || words[0] || words[1]; }
  uint64_t hash() const {
    uint64_t h = reinterpret_cast<uintptr_t>(receiver) ^
                 reinterpret_cast<uintptr_t>(receiver_type) * 0x9e3779b97f4a7c15u;
    h = (h ^ words[0]) * 0xd6e8feb86659fd93u;
    h = (h ^ h >> 32 ^ words[1] ^ uint64_t{module} << 32) * 0x9e3779b97f4a7c15u;
    return h ^ h >> 29;
  }
};

struct SurroundingName {
  const char* place;  // the frame's file, "<…>"
  uint32_t length;
  char text[244];
};
inline constexpr uint32_t kMostSurroundingNames = 4;

/// A Python function, found by its name when a stack with it is met for the first time.
struct WatchedFunction {
  const char* qualname;
  const char* file_end;       // of the path of its source
  const char* not_called_by;  // qualname: with this function around it, it does not count; or null
  /// It begins work whose surroundings are not those of its caller: while such work runs on the
  /// thread, no receiver is searched outside of it. Otherwise: a call with a receiver.
  bool is_entry;
};

struct View {
  const WatchedFunction* functions;
  uint32_t function_count;
  /// For every event that has a stack, in a few ns: words, module, is_in_work. No lock, no
  /// allocation.
  void (*sense)(Surroundings*);
  /// For the first event with this hash: names, innermost first; returns their number.
  uint32_t (*describe)(const Surroundings&, SurroundingName* out);
};

/// Null until a framework enters one, while the library is loaded.
extern const View* g_view;

}  // namespace gpumemprof::probe
