#include "report/machine_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/size.h"
#include "report/words.h"

namespace gpumemprof {
namespace {

constexpr size_t kMostRefusalLines = 3, kMostColumns = 500;
constexpr double kMachineWidth = 1000, kMachineHeight = 160;

std::string bytes_text(const SampledBytes& value) {
  return value.bytes ? format_bytes(*value.bytes)
                     : "unknown (" + printable(value.absent_because()) + ")";
}

/// "used 20.5 GiB, by this run 17.4 GiB"
std::string use_text(const UseAtLook& look, bool is_host) {
  return fmt::format("used {}, {} {}", bytes_text(look.used),
                     is_host ? "resident in this run's processes" : "by this run",
                     bytes_text(look.own));
}

/// "0.4 s after the start"
std::string when(const Analysis& analysis, uint64_t time_ns) {
  const uint64_t start = analysis.start_time_ns;
  return time_ns >= start ? format_duration(time_ns - start) + " after the start"
                          : format_duration(start - time_ns) + " before the first event";
}

void add_memory(const Analysis& analysis, const MemoryUse& use, std::vector<std::string>* out) {
  const bool is_host = use.name == "host";
  std::string head = printable(use.name);
  if (!use.model.empty()) head += ", " + printable(use.model);
  head += fmt::format(", {} in all", bytes_text(use.total));
  if (is_host && use.limit.bytes)
    head += fmt::format(", a cgroup allows {}", format_bytes(*use.limit.bytes));
  out->push_back(head + fmt::format(" ({}, {})", printable(use.source),
                                    format_plural(use.looks.size(), "sample")));
  const auto add = [&](std::string_view what, const UseAtLook& look) {
    out->push_back(
        fmt::format("  {}: {}; {}", what, use_text(look, is_host), when(analysis, look.time_ns)));
  };
  if (use.highest) add("highest", *use.highest);
  if (use.at_peak) add("nearest to the peak", *use.at_peak);
  const size_t shown = std::min(kMostRefusalLines, use.at_refusals.size());
  for (size_t i = 0; i < shown; ++i) add("as memory was refused", use.at_refusals[i]);
  if (use.at_refusals.size() > shown) {
    out->push_back(fmt::format("  and {} more as memory was refused",
                               format_plural(use.at_refusals.size() - shown, "sample")));
  }
}

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

std::string picture(const MemoryUse& use) {
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

}  // namespace

std::vector<std::string> machine_lines(const Analysis& analysis) {
  std::vector<std::string> out;
  if (!analysis.machine) return out;
  const DeviceUse& use = *analysis.machine;
  for (const MemoryUse& one : use.devices) add_memory(analysis, one, &out);
  if (!use.no_devices_because.empty())
    out.push_back("no device: " + printable(use.no_devices_because));
  for (const MemoryUse& one : use.hosts) add_memory(analysis, one, &out);
  if (use.missing_looks != 0)
    out.push_back(format_plural(use.missing_looks, "sample") + " taken and not there any more");
  return out;
}

std::string machine_section(const Analysis& analysis) {
  const std::vector<std::string> lines = machine_lines(analysis);
  if (lines.empty()) return "";
  std::string out = "<h2>The machine during the run</h2>\n";
  for (const MemoryUse& one : analysis.machine->devices) out += picture(one);
  out += "<pre>";
  for (const std::string& text : lines) (out += html_text(text)) += '\n';
  return out + "</pre>\n";
}

}  // namespace gpumemprof
