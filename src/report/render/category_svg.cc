#include "report/render/category_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/size.h"
#include "report/render/timeline_svg.h"
#include "report/words.h"

namespace gpumemprof {
namespace {

constexpr double kCategoriesWidth = 1000, kCategoriesHeight = 240, kPhaseHeight = 14;
constexpr size_t kMostPhases = 400;

/// Of one category. Twelve hues apart, of one lightness, readable on dark and light.
const char* colour(size_t category) {
  static constexpr const char* kColours[kCategories] = {"#8a8f98", "#4878d0", "#2a9fb5", "#d65f5f",
                                                        "#956cb4", "#ee854a", "#6acc64", "#c9b458",
                                                        "#dc7ec0", "#8c613c", "#5f7a8a", "#7f9fe0"};
  return kColours[category];
}

/// From the bottom: what stays long first.
constexpr Category kOrder[kCategories] = {
    Category::kParameter,      Category::kBuffer,         Category::kWeightCopy,
    Category::kOptimizerState, Category::kGradient,       Category::kActivation,
    Category::kKvCache,        Category::kInput,          Category::kWorkspace,
    Category::kTemporary,      Category::kFrameworkOther, Category::kUnknown};

class Figure {
 public:
  Figure(const Analysis& analysis, const DeviceAnalysis& device, const Tables& tables)
      : analysis_(analysis), device_(device), tables_(tables), known_(device.categories) {}

  std::string draw() {
    int64_t highest = 1;
    for (const CategoryBytes& sample : known_.timeline) {
      int64_t sum = 0;
      for (int64_t bytes : sample) sum += std::max<int64_t>(bytes, 0);
      highest = std::max(highest, sum);
    }
    top_ = axis_top(static_cast<uint64_t>(highest));
    std::string layers, legend, labels;
    std::vector<int64_t> below(known_.timeline.size(), 0);
    const CategoryBytes peak = known_.bytes_at_peak();
    for (Category category : kOrder) {
      const auto c = static_cast<size_t>(category);
      if (!is_used(c)) continue;
      layers += fmt::format("<path fill=\"{}\" d=\"{}\"><title>{}</title></path>", colour(c),
                            layer(c, &below), category_name(category));
      legend += fmt::format(
          "<span><b style=\"color:{}\">&#9632;</b> {}{}</span> ", colour(c),
          category_name(category),
          known_.is_known ? " " + format_bytes(static_cast<uint64_t>(peak[c])) : std::string());
    }
    for (int i = 0; i <= 4; ++i) {
      const uint64_t bytes = top_ / 4 * static_cast<uint64_t>(4 - i);
      labels += fmt::format("<span>{}</span>", format_bytes(bytes));
    }
    const std::string said = moments();  // counts the steps
    return fmt::format(
        "<figure><div class=\"plot\"><div class=\"y\">{}</div>"
        "<div class=\"area\"><svg viewBox=\"0 0 {:.0f} {:.0f}\" preserveAspectRatio=\"none\" "
        "role=\"img\" aria-label=\"Live bytes by category over time\">{}{}</svg></div></div>"
        "<figcaption><span>{}</span><span>time after the start; sampled every {}; {}</span>"
        "<span>{}</span></figcaption><p class=\"dim\">{} {}</p></figure>\n",
        labels, kCategoriesWidth, kCategoriesHeight, layers, said,
        axis_start(since(known_.start_ns), known_.sample_ns), format_duration(known_.sample_ns),
        steps_ == 0 ? std::string("no training step was recorded")
                    : format_plural(steps_, "step") + (steps_ > 100 ? "" : ", a line at each end"),
        format_duration(since(end_ns())), known_.is_known ? "At the peak:" : "", legend);
  }

 private:
  bool is_used(size_t c) const {
    return std::any_of(known_.timeline.begin(), known_.timeline.end(),
                       [&](const CategoryBytes& sample) { return sample[c] > 0; });
  }
  uint64_t end_ns() const { return known_.start_ns + known_.timeline.size() * known_.sample_ns; }
  uint64_t since(uint64_t time_ns) const {
    return time_ns > analysis_.start_time_ns ? time_ns - analysis_.start_time_ns : 0;
  }
  double x(uint64_t time_ns) const {
    const uint64_t after = time_ns > known_.start_ns ? time_ns - known_.start_ns : 0;
    const double span = static_cast<double>(known_.timeline.size() * known_.sample_ns);
    return std::min(kCategoriesWidth, kCategoriesWidth * static_cast<double>(after) / span);
  }
  double y(int64_t bytes) const {
    return kCategoriesHeight -
           kCategoriesHeight * static_cast<double>(bytes) / static_cast<double>(top_);
  }
  /// The area between what is below and that with the category on it.
  std::string layer(size_t c, std::vector<int64_t>* below) const {
    const double step = kCategoriesWidth / static_cast<double>(below->size());
    std::string up, back;
    for (size_t i = 0; i < below->size(); ++i) {
      const int64_t base = (*below)[i];
      const int64_t level = base + std::max<int64_t>(known_.timeline[i][c], 0);
      const double left = static_cast<double>(i) * step;
      up += fmt::format("{}{:.1f},{:.1f}H{:.1f}", i == 0 ? 'M' : 'L', left, y(level), left + step);
      (*below)[i] = level;
      back = fmt::format("L{:.1f},{:.1f}H{:.1f}", left + step, y(base), left) + back;
    }
    return up + back + 'Z';
  }
  /// Steps as lines where they can be told apart, phases as bars at the bottom.
  std::string moments() {
    std::string lines, bars;
    const uint32_t process = tables_.devices[device_.device].process;
    std::map<uint32_t, std::vector<uint64_t>> open;  // by name
    size_t phases = 0;
    for (const CategoryMoment& moment : analysis_.moments) {
      if (moment.process != process) continue;
      if (moment.kind == CategoryMoment::kStepEnd) {
        ++steps_;
        lines += fmt::format("M{0:.1f},0V{1:.0f}", x(moment.time_ns), kCategoriesHeight);
      } else if (moment.kind == CategoryMoment::kPhaseBegin) {
        open[moment.text].push_back(moment.time_ns);
      } else if (auto& begun = open[moment.text]; !begun.empty() && phases++ < kMostPhases) {
        const double from = x(begun.back());
        begun.pop_back();
        bars += fmt::format(
            "<rect class=\"phase\" x=\"{:.1f}\" y=\"{:.0f}\" width=\"{:.1f}\" height=\"{:.0f}\">"
            "<title>{}</title></rect>",
            from, kCategoriesHeight - kPhaseHeight, std::max(1.0, x(moment.time_ns) - from),
            kPhaseHeight, html_text(tables_.strings.get(moment.text)));
      }
    }
    if (steps_ > 100) lines.clear();
    return fmt::format("<path class=\"step\" d=\"{}\"/>{}", lines.empty() ? "M0,0" : lines, bars);
  }

  const Analysis& analysis_;
  const DeviceAnalysis& device_;
  const Tables& tables_;
  const DeviceCategories& known_;
  uint64_t top_ = 1;
  size_t steps_ = 0;
};

}  // namespace

std::string category_figure(const Analysis& analysis, const DeviceAnalysis& device,
                            const Tables& tables) {
  if (device.categories.timeline.empty() || device.device >= tables.devices.size()) return {};
  return Figure(analysis, device, tables).draw();
}

}  // namespace gpumemprof
