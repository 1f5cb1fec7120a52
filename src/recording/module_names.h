// Puts the paths of modules into stacks. A recorded stack names a module by the class and address
// of its object, because nothing else was known at the time. Marks of the same process, usually
// later ones, give the path of the object at an address.
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
/// An address may be reused by another module. An event between the last mark of one and the first
/// mark of the other could belong to either and keeps the class alone, as does a module that was
/// never named. A mark without a text ends a name: what follows belongs to the next one.
class ModuleNames {
 public:
  void add(uint32_t process, const Mark& mark);
  /// Puts names into the stacks of a batch. `tables` gains frames and stacks; existing ids stay.
  void apply(EventBatch* batch, Tables* tables);
  /// The stack with its name if it has only one; with several, the class.
  uint32_t named(uint32_t process, uint32_t stack, Tables* tables);

 private:
  struct Said {
    uint64_t time_ns;
    uint32_t text;
  };
  /// All marks of one address, by time.
  struct Names {
    std::vector<Said> said;
    bool is_one = false;  ///< the same at every time
  };
  /// The position of a stack's module.
  struct Label {
    uint32_t node = 0;     ///< of the stack; 0: it names none
    uint64_t address = 0;  ///< of the module's object
    std::string_view class_name;
  };
  /// A stack whose name depends on the time: its label, and the stack with each name.
  struct ByTime {
    Label label;
    absl::flat_hash_map<uint32_t, uint32_t> with_text;
  };
  /// A processed stack: the stack with its name.
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

/// The class and address in "Linear@7f21c0a3d010"; the address is 0 if there is none.
struct ModuleLabel {
  std::string_view class_name;
  uint64_t address = 0;
};
ModuleLabel parse_module_label(std::string_view text);

}  // namespace gpumemprof
