#include "report/render/machine_svg.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/size.h"
#include "report/words.h"

namespace gpumemprof {
namespace {

constexpr size_t kMostColumns = 500;
constexpr double kMachineWidth = 1000, kMachineHeight = 160;

/// Steps over time, of many samples the highest of each column.
std::string steps(const MemoryUse& use, SampledBytes UseAtLook::* field, double top) {
  const size_t columns = std::min(kMostColumns, use.looks.size());
  std::string path;
  bool is_drawing = false;
  for (size_t i = 0; i < columns; ++i) {
    std::optional<uint64_t> highest;
    for (size_t at = use.looks.size() * i / columns; at < use.looks.size() * (i + 1) / columns;
         ++at) {
      highest = std::max(highest, (use.looks[at].*field).bytes);
    }
    const double x = kMachineWidth * static_cast<double>(i) / static_cast<double>(columns);
    const double right = kMachineWidth * static_cast<double>(i + 1) / static_cast<double>(columns);
    if (highest) {
      path +=
          fmt::format("{}{:.1f},{:.1f}H{:.1f}", is_drawing ? "L" : "M", x,
                      kMachineHeight - kMachineHeight * static_cast<double>(*highest) / top, right);
    }
    is_drawing = highest.has_value();
  }
  return path;
}

}  // namespace

std::string machine_figure(const MemoryUse& use) {
  uint64_t top = use.total.bytes.value_or(0);
  if (use.highest) top = std::max(top, *use.highest->used.bytes);
  if (use.highest_own) top = std::max(top, *use.highest_own->own.bytes);
  if (top == 0 || use.looks.size() < 2) return "";
  const double scale = static_cast<double>(top);
  return fmt::format(
      "<figure><svg viewBox=\"0 0 {0} {1}\" role=\"img\" preserveAspectRatio=\"none\" "
      "width=\"100%\" height=\"{1}\"><title>{2}</title>"
      "<path d=\"{3}\" fill=\"none\" stroke=\"#8a8f98\" stroke-width=\"2\"/>"
      "<path d=\"{4}\" fill=\"none\" stroke=\"#2b6cb0\" stroke-width=\"2\"/></svg>"
      "<figcaption>{2}: used by everybody (grey) and by this run (blue), to {5}</figcaption>"
      "</figure>\n",
      kMachineWidth, kMachineHeight, html_text(use.name), steps(use, &UseAtLook::used, scale),
      steps(use, &UseAtLook::own, scale), format_bytes(top));
}

}  // namespace gpumemprof
