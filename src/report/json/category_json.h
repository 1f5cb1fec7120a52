// The part of the JSON report that says what memory is.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "analysis/analysis.h"

namespace gpumemprof {

/// Adds categories, modules and phases at the peak, and categories over time, to a device's object;
/// where they are not known, why to `unknown`.
void add_categories_json(const DeviceAnalysis& device, const Tables& tables,
                         nlohmann::ordered_json* out, nlohmann::ordered_json* unknown);

/// The categories of one stack's bytes at the moment of `holders`.
class HolderCategories {
 public:
  explicit HolderCategories(const std::vector<CategoryHolder>& holders);
  /// Adds "category", that of most of its bytes or null, where there are several "categories", and
  /// "module" and "phase" where they are known.
  void add_json(uint32_t stack, const Tables& tables, nlohmann::ordered_json* item) const;

 private:
  absl::flat_hash_map<uint32_t, std::vector<CategoryHolder>> by_stack_;
};

/// Ends of steps and phases, at which categories_at_moments are taken.
nlohmann::ordered_json moments_json(const Analysis& analysis, const Tables& tables);

}  // namespace gpumemprof
