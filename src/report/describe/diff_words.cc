#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "analysis/compare/pick_device.h"
#include "base/size.h"
#include "report/describe/facts.h"
#include "report/describe/sections.h"
#include "report/diff_report.h"
#include "report/user_code.h"
#include "report/words.h"

namespace gpumemprof {
namespace {

const Device& memory_of(const DiffSide& side) {
  return device_at(*side.tables, side.device == nullptr ? SIZE_MAX : side.device->device);
}

/// No history on either side: there is no peak, only what was live at one time.
bool are_moments(const Diff& diff) {
  return diff.a.device && diff.b.device && is_moment(*diff.a.device) && is_moment(*diff.b.device);
}

std::string role_text(const ProcessRole& role) {
  if (role.rank) return fmt::format("rank {}", *role.rank);
  return role.is_worker ? "a worker process" : "the program's own process";
}

std::string device_text(const Diff& diff) {
  std::string a = memory_name(*diff.a.device, *diff.a.tables),
              b = memory_name(*diff.b.device, *diff.b.tables);
  if (diff.a.is_by_role || diff.b.is_by_role) {
    const std::string role = role_text(role_of(*diff.a.device, *diff.a.tables));
    a += " of " + role, b += " of " + role;
  }
  return a == b ? a : fmt::format("{} (A) and {} (B)", a, b);
}

uint64_t peak_of(const DiffSide& side) {
  return side.device == nullptr ? 0 : side.device->figures.peak_bytes;
}
uint64_t end_of(const DiffSide& side) {
  return side.device == nullptr ? 0 : bytes_before_exit(*side.device);
}

std::string end_of_step(const DiffSide& side) {
  return fmt::format("the end of step {}", side.moment->step);
}

std::string steps_sentence(const Diff& diff, uint64_t a, uint64_t b) {
  if (a == b) {
    return fmt::format("No difference: {} (B) and {} (A) both have {} live on {}",
                       end_of_step(diff.b), end_of_step(diff.a), format_bytes(a),
                       device_text(diff));
  }
  return fmt::format("From {} (A) to {} (B) {} ({}): {} -> {} are live on {}", end_of_step(diff.a),
                     end_of_step(diff.b), change_text(a, b), change_percent(a, b), format_bytes(a),
                     format_bytes(b), device_text(diff));
}

/// No event of it is there, though it had some.
bool is_peak_unknown(const DiffSide& side) {
  return side.device == nullptr && !side.analysis->loss.has_every_event();
}

std::string unknown_peak_sentence(const Diff& diff) {
  const bool a = is_peak_unknown(diff.a), b = is_peak_unknown(diff.b);
  if (a && b) return "The peaks of A and B are unknown: events were lost";
  return fmt::format("{}'s peak is unknown, because events were lost; {}'s is {}", a ? "A" : "B",
                     a ? "B" : "A", format_bytes(peak_of(a ? diff.b : diff.a)));
}

/// "; NOT EXACT: events were lost (B)"
std::string not_exact_text(const Diff& diff) {
  std::string why, names;
  for (const DiffSide* side : {&diff.a, &diff.b}) {
    if (side->device == nullptr || is_exact(*side->analysis, *side->device)) continue;
    why = why_not_exact(*side->analysis, *side->device);
    names += (names.empty() ? "" : ", ") + std::string(side == &diff.a ? "A" : "B");
  }
  return names.empty() ? "" : fmt::format("; NOT EXACT: {} ({})", why, names);
}

/// ", until B failed"
std::string until_text(const Diff& diff) {
  const bool a = !diff.a.analysis->ends.failure.empty(), b = !diff.b.analysis->ends.failure.empty();
  if (!a && !b) return "";
  return fmt::format(", until {} failed", a && b ? "both" : a ? "A" : "B");
}

/// Of what is compared: the device, or the allocators that it is the sum of.
std::vector<uint16_t> compared_devices(const DiffSide& side) {
  if (side.device == nullptr) return {};
  return side.device->parts.empty() ? std::vector{side.device->device} : side.device->parts;
}

bool is_compared(const DiffSide& side, uint16_t device) {
  const std::vector<uint16_t> compared = compared_devices(side);
  return std::ranges::find(compared, device) != compared.end();
}

bool is_compared_name(const DiffSide& side, const std::string& name) {
  return std::ranges::any_of(compared_devices(side), [&](uint16_t device) {
    return device_name(device_at(*side.tables, device)) == name;
  });
}

struct PeaksOfMemory {
  uint64_t bytes = 0;
  size_t processes = 0;
  bool operator==(const PeaksOfMemory&) const = default;
  std::string text() const {
    const std::string sum = format_bytes(bytes);
    return processes == 1 ? sum : fmt::format("{} in the peaks of {} processes", sum, processes);
  }
};

/// By name, without the memory that is compared and what is no tensors'.
std::map<std::string, PeaksOfMemory> other_memories(const DiffSide& side) {
  std::map<std::string, PeaksOfMemory> out;
  for (const DeviceAnalysis& device : side.analysis->devices) {
    const Device& memory = device_at(*side.tables, device.device);
    if (is_compared(side, device.device) || is_host_blocks(memory) || memory.layer == Layer::kDriver) continue;
    const std::string name = device_name(memory);
    const bool is_same = is_compared_name(side, name);
    PeaksOfMemory& sum = out[is_same ? name + " of other processes" : name];
    sum.bytes += device.figures.peak_bytes, ++sum.processes;
  }
  return out;
}

/// "Not compared: shared memory, 3.00 MiB (A) and 9.00 MiB (B)."
void add_not_compared(const Diff& diff, std::vector<std::string>* out) {
  if (diff.a.analysis == diff.b.analysis) return;
  auto a = other_memories(diff.a), b = other_memories(diff.b);
  for (const auto& [name, unused] : b) a.try_emplace(name);
  for (const auto& [name, of_a] : a) {
    const PeaksOfMemory of_b = b[name];
    if (of_a == of_b) continue;
    out->push_back(fmt::format("Not compared: {}, {} (A) and {} (B).", name,
                               of_a.processes == 0 ? "nothing" : of_a.text(),
                               of_b.processes == 0 ? "nothing" : of_b.text()));
  }
}

/// "A's highest peak, 11.0 MiB on cpu, process 7 (t.py), was not compared: it is that of …"
void add_other_role(const Diff& diff, std::vector<std::string>* out) {
  for (const DiffSide* side : {&diff.a, &diff.b}) {
    const DeviceAnalysis* main =
        side->is_by_role ? main_device(*side->analysis, *side->tables) : nullptr;
    if (main == nullptr) continue;
    const Device& memory = device_at(*side->tables, main->device);
    const auto role = [&](const DeviceAnalysis& device) {
      return role_text(role_of(device, *side->tables));
    };
    out->push_back(fmt::format(
        "{}'s highest peak, {} on {}, {}, was not compared: it is that of {}, {}'s that of {}.",
        side == &diff.a ? "A" : "B", format_bytes(main->figures.peak_bytes),
        memory_name(*main, *side->tables), process_label(process_at(*side->tables, memory.process)),
        role(*main), side == &diff.a ? "B" : "A", role(*side->device)));
  }
}

/// "Within step 3 (A) memory went up to 1 MiB, within step 5 (B) to 2 MiB."
std::string step_peaks_sentence(const Diff& diff) {
  std::string text;
  for (const DiffSide* side : {&diff.a, &diff.b}) {
    if (!side->moment->step_peak_bytes) continue;
    text +=
        fmt::format("{}ithin step {} ({}) {}to {}", text.empty() ? "W" : ", w", side->moment->step,
                    side == &diff.a ? "A" : "B", text.empty() ? "memory went up " : "",
                    format_bytes(*side->moment->step_peak_bytes));
  }
  return text.empty() ? text : text + ". ";
}

}  // namespace

std::string change_text(uint64_t a_bytes, uint64_t b_bytes) {
  if (a_bytes == b_bytes) return "0 B";
  return b_bytes > a_bytes ? fmt::format("+{}", format_bytes(b_bytes - a_bytes))
                           : fmt::format("-{}", format_bytes(a_bytes - b_bytes));
}

std::string change_percent(uint64_t a_bytes, uint64_t b_bytes) {
  if (a_bytes == b_bytes) return "0 %";
  if (a_bytes == 0) return "new";
  const double share =
      (static_cast<double>(b_bytes) - static_cast<double>(a_bytes)) / static_cast<double>(a_bytes);
  return fmt::format("{:+.1f} %", 100 * share);
}

std::string diff_sentence(const Diff& diff) {
  const uint64_t a = peak_of(diff.a), b = peak_of(diff.b);
  if (is_peak_unknown(diff.a) || is_peak_unknown(diff.b)) return unknown_peak_sentence(diff);
  if (diff.a.device == nullptr && diff.b.device == nullptr) {
    return "Nothing was allocated in either run.";
  }
  if (diff.a.moment && diff.b.moment) return steps_sentence(diff, a, b);
  if (diff.a.device == nullptr || diff.b.device == nullptr) {
    const bool is_a_empty = diff.a.device == nullptr;
    const DiffSide& other = is_a_empty ? diff.b : diff.a;
    return fmt::format("Nothing was allocated in {}; {} {} on {}{}{}", is_a_empty ? "A" : "B",
                       is_a_empty ? "B" : "A",
                       is_moment(*other.device) ? "holds " + format_bytes(peak_of(other))
                                                : "has a peak of " + format_bytes(peak_of(other)),
                       memory_name(*other.device, *other.tables), until_text(diff),
                       not_exact_text(diff));
  }
  const bool has_peak = !are_moments(diff);
  if (a == b) {
    return fmt::format("A and B {}: {} on {}{}{}",
                       has_peak ? "have the same peak" : "hold the same", format_bytes(a),
                       device_text(diff), until_text(diff), not_exact_text(diff));
  }
  std::string share = change_percent(a, b);
  if (share.starts_with('+') || share.starts_with('-')) share.erase(0, 1);
  const char* more = has_peak ? "higher" : "more";
  const char* less = has_peak ? "lower" : "less";
  return fmt::format("{} {} ({}) {}: {} -> {} on {}{}{}", has_peak ? "B's peak is" : "B holds",
                     format_bytes(a < b ? b - a : a - b), share, a < b ? more : less,
                     format_bytes(a), format_bytes(b), device_text(diff), until_text(diff),
                     not_exact_text(diff));
}

std::string diff_end(const Diff& diff) {
  const auto is_whole_run = [](const DiffSide& side) {
    return side.analysis->source.kind == SourceKind::kRecording;
  };
  return is_whole_run(diff.a) && is_whole_run(diff.b) ? "after the last allocation" : "at the end";
}

std::string diff_end_sentence(const Diff& diff) {
  const uint64_t a = end_of(diff.a), b = end_of(diff.b);
  const bool of_steps = diff.a.moment && diff.b.moment;
  const auto lines_that = [&](Change change) {
    return format_count(static_cast<uint64_t>(
        std::ranges::count_if(diff.by_line, [&](const DiffRow& row) {
          return row.change() == change && !(of_steps && row.is_never_live());
        })));
  };
  const std::string lines = fmt::format(
      "Lines: {} grew, {} shrank, {} appeared, {} vanished.", lines_that(Change::kGrew),
      lines_that(Change::kShrank), lines_that(Change::kAppeared), lines_that(Change::kVanished));
  if (of_steps) return step_peaks_sentence(diff) + lines;
  if (are_moments(diff)) return lines;
  const std::string when = capitalized(diff_end(diff));
  const std::string end = a == b ? fmt::format("{} both have {}.", when, format_bytes(a))
                                 : fmt::format("{} {}: {} -> {}.", when, change_text(a, b),
                                               format_bytes(a), format_bytes(b));
  return end + ' ' + lines;
}

std::vector<std::string> diff_caveats(const Diff& diff) {
  std::vector<std::string> out;
  if (diff.moved_lines != 0) {
    out.push_back(fmt::format("{} of A {} another number in B, matched by what {} allocated.",
                              format_plural(diff.moved_lines, "line"),
                              diff.moved_lines == 1 ? "has" : "have",
                              diff.moved_lines == 1 ? "it" : "they"));
  }
  if (diff.a.device != nullptr && diff.b.device != nullptr) {
    const Device &a = memory_of(diff.a), &b = memory_of(diff.b);
    const bool a_is_requested = has_requested_sizes(*diff.a.device, *diff.a.tables);
    if (a_is_requested != has_requested_sizes(*diff.b.device, *diff.b.tables)) {
      out.push_back(
          fmt::format("{} counts requested bytes, {} bytes rounded by the allocator: part of the "
                      "difference is rounding.",
                      a_is_requested ? "A" : "B", a_is_requested ? "B" : "A"));
    }
    const std::string_view framework_a = framework_name(a), framework_b = framework_name(b);
    if (framework_a != framework_b) {
      out.push_back(
          fmt::format("A used {}, B used {}: compare by layer or by line; stacks rarely match.",
                      framework_a, framework_b));
    } else if (a.type != b.type) {
      out.push_back("The devices are of different kinds.");
    }
  }
  add_other_role(diff, &out);
  add_not_compared(diff, &out);
  for (const DiffSide* side : {&diff.a, &diff.b}) {
    if (side == &diff.b && diff.b.analysis == diff.a.analysis) break;  // one run, two moments
    const char* name = side == &diff.a ? "A" : "B";
    if (!is_complete(side->analysis->loss)) {
      out.push_back(fmt::format("{}: {}", name, loss_sentence(side->analysis->loss)));
    }
    const bool has_stacks =
        side->analysis->source.can.stacks ||
        std::ranges::any_of(side->analysis->devices, [](const DeviceAnalysis& device) {
          return std::ranges::any_of(device.holders_at_peak,
                                     [](const Holder& holder) { return holder.stack != 0; });
        });
    if (!has_stacks) out.push_back(fmt::format("{} has no stacks.", name));
    if (!side->analysis->source.can.complete_history) {
      out.push_back(fmt::format(
          "{} may not cover the start of the run: its peak is the peak of the recorded part.",
          name));
    }
    for (const std::string& text : caveats(*side->analysis, *side->tables)) {
      out.push_back(fmt::format("{}: {}", name, text));
    }
  }
  return out;
}

std::string row_text(const Diff& diff, const DiffRow& row, std::string_view folder) {
  return headline_text(*(row.from_b ? diff.b : diff.a).tables, row.node, folder);
}

std::string layer_text(const Diff& diff, const DiffRow& row) {
  const Diff::LayerPart& of = diff.layers[row.node];
  const std::string part = of.part == "unknown" ? "" : fmt::format(", {}", of.part);
  return (of.layer.empty() ? kNotInALayer : printable(of.layer)) + part;
}

std::string group_text(const Diff& diff, const DiffRow& row) {
  const std::string& name = diff.groups[row.node];
  return name.empty() ? "(outside of any module)" : printable(name);
}

const char* when_text(const Diff& diff) {
  return (diff.a.moment && diff.b.moment) || are_moments(diff) ? "" : ", at the peak";
}

}  // namespace gpumemprof
