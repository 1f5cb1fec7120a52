// When a step of the program's loop ends, from the optimizers that step.
#pragma once

#include <vector>

namespace gpumemprof::python {

/// One optimizer: a step ends when it has stepped. Several that take turns, such as those of a GAN:
/// when the last of them has, once a turn has been seen; before, and where they come in no fixed
/// order, when the first one has. One that steps twice while the first one does not takes its
/// place, and so does a new one after a whole turn: that of the next model, where a program trains
/// one after the other.
class StepCounter {
 public:
  /// The optimizer has stepped, `is_first_step`: never before. Whether a step of the program ends
  /// here.
  bool stepped(const void* optimizer, bool is_first_step);

  /// It is dead.
  void forget(const void* optimizer);

 private:
  const void* first_ = nullptr;
  std::vector<const void*> others_;  ///< that have stepped since the first one did, in order
  std::vector<const void*> turn_;    ///< those of the turn before
  bool turn_is_known_ = false;
  bool is_irregular_ = false;
  bool is_waiting_ = false;  ///< for the last of the turn
};

}  // namespace gpumemprof::python
