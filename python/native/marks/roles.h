// What storages have been told to be. Everything that has a role is used when a step ends, and
// what has changed since the look before is told; of the rest one mark says that it holds.
#pragma once

#include <Python.h>

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace gpumemprof::python {

/// One thing that a look finds. Where none of them is another than in the look before, nothing
/// need be told.
struct Sight {
  const PyObject* tensor;  ///< never read. Of a gradient, the parameter, whose sight is before it
  const void* address;     ///< of its storage; null: none
  int role;                ///< 0: the optimizer's parameter is one of a model
  bool operator==(const Sight&) const = default;
};

/// Under the GIL.
class Roles {
 public:
  /// Takes all that a look found, in an order that stays the same while nothing changes, and leaves
  /// the sights of the look before. True: what has changed is told, as it is nothing but where
  /// gradients are. Else the look has to be made by begin_look(), is_told() and end_look().
  bool follow(std::vector<Sight>* sights);

  const std::vector<Sight>& sights() const { return sights_; }

  /// A look begins: whatever is not seen in it is taken back at its end.
  void begin_look();

  /// Whether nothing need be told of the storage: it has been told to be just this, or has been
  /// seen as something else in this look already. `owner`: by which the name is known. `tensors`: of
  /// how many it is the gradient.
  bool is_told(const void* address, int role, const PyObject* owner, size_t tensors = 1);

  /// Whether the look has seen it.
  bool is_seen(const void* address) const {
    const auto found = told_.find(address);
    return found != told_.end() && found->second.seen_in == look_;
  }

  /// Tells it. What was told of the storage before no longer holds. Where a parameter has another
  /// name now, the next look tells its gradient and state again.
  void tell(const void* address, int role, const PyObject* owner, std::string name,
            size_t tensors = 1);

  /// Of a storage that has been told; empty for any other.
  const std::string& name(const void* address) const;

  /// The look has seen everything.
  void end_look();

  /// In a forked child.
  void forget() { told_.clear(), renamed_.clear(), is_changed_ = true; }

 private:
  struct Told {
    int role = 0;
    uint64_t seen_in = 0;
    const PyObject* owner = nullptr;  // never read, as it may be dead
    size_t tensors = 1;
    std::string name;
  };
  static constexpr uint64_t kGone = 0;  // no look has this number

  bool move_gradients(const std::vector<Sight>& before);

  std::unordered_map<const void*, Told> told_;
  std::unordered_set<const PyObject*> renamed_;  // parameters, since the last look; never read
  std::vector<Sight> sights_;   // of the last look
  std::vector<size_t> changed_;  // of them, those that were others in the look before
  uint64_t look_ = 1;
  bool is_changed_ = true;  // something was told since that look
};

/// Those of the process. Never freed: objects may die after static variables.
Roles& roles();

}  // namespace gpumemprof::python
