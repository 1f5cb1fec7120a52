// Memory of the host and the devices during the run, from samples.
#include <fmt/format.h>

#include <algorithm>

#include "base/size.h"
#include "report/describe/facts.h"
#include "report/describe/sections.h"
#include "report/words.h"

namespace gpumemprof {
namespace {

constexpr size_t kMostRefusalLooks = 3;
constexpr const char* kResident = "resident in this run's processes (shared pages in each)";

std::string bytes_or_why(const SampledBytes& value) {
  return value.bytes ? format_bytes(*value.bytes) : "unknown (" + value.absent_because() + ")";
}

/// "used 20.5 GiB, by this run 17.4 GiB"
std::string use_text(const UseAtLook& look, bool is_host) {
  return fmt::format("used {}, {} {}", bytes_or_why(look.used),
                     is_host ? kResident : "by this run",
                     bytes_or_why(look.own));
}

Item memory_item(const Analysis& analysis, const MemoryUse& use) {
  const bool is_host = use.name == "host";
  Item item{.label = "", .text = use.name};
  if (!use.model.empty()) item.text += ", " + use.model;
  item.text += fmt::format(", {} in all", bytes_or_why(use.total));
  if (is_host && use.limit.bytes)
    item.text += fmt::format(", a cgroup allows {}", format_bytes(*use.limit.bytes));
  item.text += fmt::format(" ({}, {})", use.source, format_plural(use.looks.size(), "sample"));
  const auto add = [&](std::string_view what, const UseAtLook& look) {
    item.details.push_back({fmt::format("{}: {}; {}", what, use_text(look, is_host),
                                        moment_text(analysis, look.time_ns))});
  };
  if (use.highest) add("highest", *use.highest);
  if (use.at_peak) add("nearest to the peak", *use.at_peak);
  const size_t shown = std::min(kMostRefusalLooks, use.at_refusals.size());
  for (size_t i = 0; i < shown; ++i) add("after memory was refused", use.at_refusals[i]);
  if (use.at_refusals.size() > shown) {
    item.details.push_back({fmt::format("and {} more after memory was refused",
                                        format_plural(use.at_refusals.size() - shown, "sample"))});
  }
  return item;
}

/// Everybody's use and that of this run, on the clock of the run.
Chart use_chart(const Analysis& analysis, const MemoryUse& use) {
  std::vector<double> times_s, used, own;
  const auto value = [](const SampledBytes& sampled) {
    return sampled.bytes ? static_cast<double>(*sampled.bytes) : std::nan("");
  };
  for (const UseAtLook& look : use.looks) {
    times_s.push_back(second_of(analysis, look.time_ns));
    used.push_back(value(look.used)), own.push_back(value(look.own));
  }
  Chart out{.title = use.name,
            .lines = {chart_line("used by all processes", times_s, used),
                      chart_line(use.name == "host" ? kResident
                                                    : "used by this run",
                                 times_s, own)},
            .limit_bytes = use.limit.bytes ? use.limit.bytes : use.total.bytes};
  return out;
}

}  // namespace

Section machine_section(const Subject& subject) {
  Section out{"The machine during the run"};
  if (!subject.analysis.machine) return out;
  const DeviceUse& use = *subject.analysis.machine;
  for (const auto* all : {&use.devices, &use.hosts}) {
    for (const MemoryUse& one : *all) {
      if (one.looks.size() > 1) out.add(use_chart(subject.analysis, one));
    }
  }
  List list;
  for (const MemoryUse& one : use.devices) list.items.push_back(memory_item(subject.analysis, one));
  if (!use.no_devices_because.empty())
    list.items.push_back({"", "no device: " + use.no_devices_because});
  for (const MemoryUse& one : use.hosts) list.items.push_back(memory_item(subject.analysis, one));
  if (use.missing_looks != 0)
    list.items.push_back(
        {"", format_plural(use.missing_looks, "sample") +
                 (use.missing_looks == 1 ? " is" : " are") + " missing from the recording"});
  if (!list.items.empty()) out.add(std::move(list));
  return out;
}

}  // namespace gpumemprof
