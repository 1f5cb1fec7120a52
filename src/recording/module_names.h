// Puts the paths of modules into stacks. A stack names the module that was called by its class and
// the address of its object, as nothing else was at hand then; marks of the same process say what
// the object at an address is called in its model, usually later.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "trace/event.h"
#include "trace/tables.h"

namespace gpumemprof {

/// Not thread-safe. Memory O(marks of modules + stacks).
///
/// An address may be used again by another module. Of two names of one address, an event between
/// the last mark of the one and the first of the other could be of either: it has the class alone,
/// as has one whose address was never named. A mark without a text ends a name: what comes after it
/// is of the next one.
class ModuleNames {
 public:
  void add(uint32_t process, const Mark& mark);
  /// Puts names into the stacks of a batch. `tables` gains frames and stacks; ids that were handed
  /// out stay.
  void apply(EventBatch* batch, Tables* tables);
  /// The stack with the name in it that holds at every time; where there are several, the class.
  uint32_t named(uint32_t process, uint32_t stack, Tables* tables);

 private:
  struct Said {
    uint64_t time_ns;
    uint32_t text;
  };
  /// All that was said of one address, by time.
  struct Names {
    std::vector<Said> said;
    bool is_one = false;  ///< the same at every time
  };
  /// Where a stack names its module.
  struct Label {
    uint32_t node = 0;     ///< of the stack; 0: it names none
    uint64_t address = 0;  ///< of the module's object
    std::string_view class_name;
  };
  /// A stack whose name depends on the time: its label, and what it is with each name in it.
  struct ByTime {
    Label label;
    absl::flat_hash_map<uint32_t, uint32_t> with_text;
  };
  /// A stack that was looked at: what it is with its name in it.
  struct Known {
    static constexpr uint32_t kUnseen = UINT32_MAX, kByTime = UINT32_MAX - 1;
    uint32_t stack = kUnseen;
  };
  bool may_name_modules(const Tables& tables);
  uint32_t lookup(uint32_t process, uint32_t stack, std::optional<uint64_t> time_ns,
                  Tables* tables);
  static Label label_of(uint32_t stack, const Tables& tables);
  static uint32_t with_text(uint32_t stack, const Label& label, uint32_t text, Tables* tables);
  const Names* names_of(uint32_t process, uint64_t address);
  static uint32_t name_at(const Names& names, std::optional<uint64_t> time_ns);

  absl::flat_hash_map<std::pair<uint32_t, uint64_t>, Names> names_;
  bool is_sorted_ = false;
  std::vector<std::vector<Known>> known_;  // by process, by stack
  absl::flat_hash_map<std::pair<uint32_t, uint32_t>, ByTime> by_time_;  // by process and stack
  uint32_t frames_seen_ = 0;
  bool has_module_frames_ = false;
};

/// Of "Linear@7f21c0a3d010" the class and the address; the address is 0 where there is none.
struct ModuleLabel {
  std::string_view class_name;
  uint64_t address = 0;
};
ModuleLabel parse_module_label(std::string_view text);

}  // namespace gpumemprof
