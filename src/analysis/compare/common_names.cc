#include "analysis/compare/common_names.h"

namespace gpumemprof {

CommonNames::CommonNames(const DiffSide& a, const DiffSide& b)
    : tables_{a.device == nullptr ? nullptr : a.tables, b.device == nullptr ? nullptr : b.tables} {
  for (const bool of_b : {true, false}) {
    if (!tables_[of_b]) continue;
    files_[of_b].resize(tables_[of_b]->strings.size());
    functions_of_lines_[of_b].resize(tables_[of_b]->strings.size());
  }
  if (tables_[0]) functions_of_a_.resize(tables_[0]->strings.size());
}

uint32_t CommonNames::file(bool of_b, uint32_t id) {
  return files_[of_b].of(
      id, [&] { return aligned_.intern(aligned_file(tables_[of_b]->strings.get(id))); });
}

uint32_t CommonNames::function(bool of_b, uint32_t id) {
  const StringTable& strings = tables_[of_b]->strings;
  if (id >= strings.size()) return 0;
  if (of_b || tables_[1] == nullptr) return id;
  return functions_of_a_.of(id, [&] {
    const StringTable& of_other = tables_[1]->strings;
    return of_other.find(strings.get(id)).value_or(of_other.size() + id);
  });
}

uint32_t CommonNames::function_of_line(bool of_b, uint32_t id) {
  return functions_of_lines_[of_b].of(id, [&] {
    const std::string_view name = tables_[of_b]->strings.get(id);
    const size_t dot = name.rfind('.');
    return dot == name.npos ? function(of_b, id) : number_of(name.substr(dot + 1));
  });
}

uint32_t CommonNames::number_of(std::string_view function) {
  uint32_t before = 0;
  for (const bool of_b : {true, false}) {
    if (!tables_[of_b]) continue;
    const StringTable& strings = tables_[of_b]->strings;
    if (const auto id = strings.find(function)) return before + *id;
    before += strings.size();
  }
  return before + aligned_.intern(function);
}

}  // namespace gpumemprof
