// Files and functions of two runs under common numbers.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "analysis/compare/diff.h"

namespace gpumemprof {

/// What was found of an id: a number below kNotFound.
class Memo {
 public:
  static constexpr uint32_t kNotFound = UINT32_MAX;
  void resize(size_t ids) { known_.assign(ids, kNotFound); }
  /// `find` is called once for an id; one that is beyond the ids is looked for each time.
  template <class Find>
  uint32_t of(uint32_t id, Find find) {
    if (id >= known_.size()) return find();
    if (known_[id] == kNotFound) known_[id] = find();
    return known_[id];
  }

 private:
  std::vector<uint32_t> known_;
};

/// The tables of both runs must outlive it. Not thread-safe.
class CommonNames {
 public:
  CommonNames(const DiffSide& a, const DiffSide& b);
  /// Of a string id of B, or of A: a file by aligned_file().
  uint32_t file(bool of_b, uint32_t id);
  /// A function has the id that its name has in B; one that B does not name, one above all of B's.
  uint32_t function(bool of_b, uint32_t id);
  /// Without classes and outer functions, which graphs of TensorFlow and Pythons before 3.11 do not
  /// name: "PINN.call" as "call". Beside a line it is as good as the whole name.
  uint32_t function_of_line(bool of_b, uint32_t id);

 private:
  /// What function() returns where a run names the function so.
  uint32_t number_of(std::string_view function);

  const Tables* tables_[2];  // null: that run has no such device
  Memo files_[2], functions_of_a_, functions_of_lines_[2];
  StringTable aligned_;
};

}  // namespace gpumemprof
