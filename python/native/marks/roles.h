// What storages have been told to be. Everything that has a role is looked at when a step ends, and
// what has changed since the look before is told; of the rest one mark says that it holds.
#pragma once

#include <Python.h>

#include <string>
#include <unordered_map>

namespace gpumemprof::python {

/// Under the GIL.
class Roles {
 public:
  /// A look begins: whatever is not seen in it is taken back at its end.
  void begin_look() { ++look_; }

  /// Whether nothing need be told of the storage: it has been told to be just this, or has been
  /// seen as something else in this look already. `owner`: by which the name is known.
  bool is_told(const void* address, int role, const PyObject* owner);

  /// Whether the look has seen it.
  bool is_seen(const void* address) const {
    const auto found = told_.find(address);
    return found != told_.end() && found->second.seen_in == look_;
  }

  /// Tells it. What was told of the storage before no longer holds.
  void tell(const void* address, int role, const PyObject* owner, std::string name);

  /// Of a storage that has been told; empty for any other.
  const std::string& name(const void* address) const;

  /// The look has seen everything.
  void end_look();

  /// In a forked child.
  void forget() { told_.clear(); }

 private:
  struct Told {
    int role;
    uint64_t seen_in;
    const PyObject* owner;  // never read, as it may be dead
    std::string name;
  };
  std::unordered_map<const void*, Told> told_;
  uint64_t look_ = 1;
};

/// Those of the process. Never freed: objects may die after static variables.
Roles& roles();

}  // namespace gpumemprof::python
