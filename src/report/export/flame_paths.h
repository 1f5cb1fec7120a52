// What was live at one moment as weighted paths, outermost first: what flame graphs are drawn of,
// by stack, by module or by category. All bytes are in it, whatever is known of them.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/analysis.h"

namespace gpumemprof {

/// All that was live at one moment. Points into the analysis.
struct LiveSet {
  const std::vector<Holder>* holders = nullptr;
  const std::vector<CategoryHolder>* categories = nullptr;  ///< null where they are not known
  std::string why_no_categories;
};
LiveSet live_at_peak(const DeviceAnalysis& device);
LiveSet live_after_last_allocation(const DeviceAnalysis& device);
LiveSet live_at_end(const DeviceAnalysis& device);
LiveSet live_at(const LiveMoment& moment);

enum class FlameGrouping : uint8_t {
  kStack,     ///< every frame
  kModule,    ///< the parts of the module's path, the category, the tensor's name or the line
  kLine,      ///< the innermost line of the user's own code
  kCategory,  ///< the category, the module, the tensor's name or the line
};
inline constexpr std::array<std::string_view, 4> kGroupingNames = {"stack", "module", "line",
                                                                   "category"};

struct FlamePath {
  std::vector<uint32_t> frames;  ///< ids in FlamePaths::names; never empty
  uint64_t bytes = 0, count = 0;
};
struct FlamePaths {
  StringTable names;             ///< printable
  std::vector<FlamePath> paths;  ///< distinct but for kStack, largest first
  uint64_t total_bytes = 0;      ///< the sum of all
};

/// Of every frame, in the order of the holders.
FlamePaths stack_paths(const std::vector<Holder>& holders, const Tables& tables);
/// Where PyTorch's categories are not known, modules are the layers that operations and scopes
/// name. Errors: kUsage with why the grouping is not known.
Result<FlamePaths> flame_paths(const LiveSet& live, FlameGrouping by, const Tables& tables);

}  // namespace gpumemprof
