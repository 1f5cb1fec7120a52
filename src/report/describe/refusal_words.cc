#include "report/describe/end_words.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/held_attempt.h"
#include "analysis/replay/snapshot_device.h"
#include "base/size.h"
#include "report/describe/facts.h"
#include "report/user_code.h"
#include "report/words.h"
#include "trace/holder_lines.h"

namespace gpumemprof {
namespace {

bool is_explained(const DeviceAnalysis& device) {
  return device.snapshot && !device.snapshot->ooms.empty();
}

}  // namespace

std::vector<Refusal> caught_refusals(const Analysis& analysis, const DeviceAnalysis& device) {
  std::vector<Refusal> out = device.refusals;
  std::erase_if(out, [&](const Refusal& one) {
    return std::ranges::any_of(analysis.ends.refused, [&](const RefusedRequest& refused) {
      return refused.told && refused.told->device == device.device &&
             refused.told->number == one.number;
    });
  });
  return out;
}

bool went_on_after(const Refusal& refusal, const Analysis& analysis, const Tables& tables,
                   const DeviceAnalysis& device) {
  if (device.last_alloc_event > refusal.event) return true;
  const auto ended_well = [](const ProgramEnd& run) { return run.exit_code == 0; };
  return analysis.ends.failure.empty() && std::ranges::any_of(analysis.ends.runs, ended_well) &&
         process_at(tables, device_at(tables, device.device).process).exited_cleanly;
}

std::vector<std::string> caught_refusal_sentences(const Analysis& analysis, const Tables& tables,
                                                  std::string_view working_folder) {
  std::vector<std::string> out;
  for (const DeviceAnalysis& device : analysis.devices) {
    if (is_explained(device)) continue;
    const std::vector<Refusal> caught = caught_refusals(analysis, device);
    if (caught.empty()) continue;
    const Refusal& largest = *std::ranges::max_element(caught, {}, &Refusal::size_bytes);
    const uint64_t more = action_count(device.figures, Action::kOom) - device.refusals.size();
    const std::string name = device_name(device_at(tables, device.device));
    const std::string who = name == "cpu" ? "The CPU allocator" : "The allocator of " + name;
    std::string text = caught.size() == 1 ? fmt::format("{} refused {}", who,
                                                        format_bytes(largest.size_bytes))
                                          : fmt::format("{} refused {}, the "
                                                        "largest of {}",
                                                        who,
                                                        format_plural(caught.size() + more,
                                                                      "request"),
                                                        format_bytes(largest.size_bytes));
    if (largest.stack != 0)
      text += " at " + headline_text(tables, headline_node(tables, largest.stack), working_folder);
    const bool gave_up = std::ranges::any_of(analysis.ends.refused, [&](const RefusedRequest& one) {
      return one.was_caught && one.told && one.told->device == device.device;
    });
    if (gave_up)
      text += " before that";
    else if (went_on_after(caught.back(), analysis, tables, device))
      text += "; the program went on";
    text += '.';
    // Of a program that gave up, a finding tells it.
    if (const auto held = gave_up ? std::nullopt : held_attempt(device, tables))
      text += fmt::format(" When the last one was refused, {} of the attempt at {} were still live, "
                          "though it was over: leave the except block before you try again at {}, "
                          "and keep no exception.",
                          format_bytes(held->bytes),
                          headline_text(tables, headline_node(tables, held->stack), working_folder),
                          headline_text(tables, held->again, working_folder));
    out.push_back(std::move(text));
  }
  return out;
}

}  // namespace gpumemprof
