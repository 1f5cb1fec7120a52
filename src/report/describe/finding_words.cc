#include "report/describe/end_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/duration.h"
#include "base/size.h"
#include "report/words.h"

namespace gpumemprof {
namespace {

template <typename Value>
std::optional<Value> named(const std::vector<std::pair<std::string, Value>>& values,
                           std::string_view name) {
  const auto found = std::ranges::find(values, name, &std::pair<std::string, Value>::first);
  if (found == values.end()) return std::nullopt;
  return found->second;
}

constexpr uint64_t kDayS = 24 * 3600, kFarS = 30 * kDayS;

/// Whole seconds are known, rounded down.
std::string pace_text(uint64_t seconds) {
  if (seconds == 0) return ", in less than a second";
  if (seconds < 60) return fmt::format(", about {} s", seconds);
  return fmt::format(", about {}", format_seconds(static_cast<double>(seconds)));
}

/// "90 more steps"; of a thousand or more two digits, as a few dozen steps foretell no more of them:
/// "about 1,400,000 more steps".
std::string steps_text(uint64_t steps, const char* step) {
  uint64_t unit = 1;
  if (steps >= 1000)
    while (steps / unit >= 100) unit *= 10;
  const uint64_t rounded = (steps / unit + (steps % unit >= (unit + 1) / 2 ? 1 : 0)) * unit;
  return (unit > 1 ? "about " : "") + format_plural(rounded, fmt::format("more {}", step));
}

/// "train.py:9 2.00 KiB a step, train.py:12 1.00 KiB, and 4 more lines".
std::string lines_text(const std::vector<FindingLine>& lines, const char* step) {
  constexpr size_t kMostLines = 6;
  std::string text;
  for (size_t i = 0; i < std::min(lines.size(), kMostLines); ++i) {
    text += fmt::format("{}{} {}{}", i == 0 ? "" : ", ", lines[i].text,
                        format_bytes(lines[i].bytes_a_step),
                        i == 0 ? fmt::format(" a {}", step) : "");
  }
  if (lines.size() > kMostLines) {
    text += fmt::format(", and {}", format_plural(lines.size() - kMostLines, "more line"));
  }
  return text;
}

/// "About 2.5 blocks a step stay live", "About 1 block in 3 steps stays live".
std::string survivors_text(double a_step, const char* step) {
  const double steps = std::round(1 / a_step);
  if (steps >= 2) return fmt::format("About 1 block in {:.0f} {}s stays live", steps, step);
  const bool is_one = a_step > 0.95 && a_step < 1.05;
  const std::string count = is_one ? "1" : fmt::format("{:.2g}", a_step);
  return count == "1" ? fmt::format("About 1 block a {} stays live", step)
                      : fmt::format("About {} blocks a {} stay live",
                                    a_step < 100 ? count : fmt::format("{:.0f}", a_step), step);
}

/// "1 block grows by 16.0 KiB a step: a larger one replaces it".
std::string replaced_text(uint64_t blocks, uint64_t bytes_a_step, const char* step) {
  const std::string growth = fmt::format("{} a {}", format_bytes(bytes_a_step), step);
  if (blocks == 1) return fmt::format("1 block grows by {}: a larger one replaces it", growth);
  return fmt::format("{} blocks grow by {} together: larger ones replace them",
                     format_count(blocks), growth);
}

}  // namespace

std::string finding_sentence(const Finding& finding) {
  const auto holder = named(finding.facts, "holder");
  const auto a_step = named(finding.evidence, "bytes_a_step");
  const bool is_leak = finding.kind == FindingKind::kLeak;
  std::string text = fmt::format("{}: {}.", is_leak ? "leak" : severity_name(finding.severity),
                                 finding.title);
  // "History.losses, by self in update (train.py)", where it is known.
  if (is_leak && a_step && holder && named(finding.evidence, "held_blocks")) {
    const size_t begin = finding.title.find(" keep");
    const bool is_least = named(finding.evidence, "exceptions_bytes").has_value();
    text = fmt::format("leak: {} keeps {}{} more with every step ({}).",
                       holder->substr(0, holder->find(", by ")), is_least ? "at least " : "",
                       format_bytes(*a_step),
                       finding.title.substr(0, begin));
  }
  text = capitalized(std::move(text));
  return finding.fix.empty() ? text : fmt::format("{} Fix: {}.", text, finding.fix);
}

std::vector<std::string> finding_details(const Finding& finding) {
  std::vector<std::string> out;
  const bool goes_by_rounds = finding.kind == FindingKind::kGrowthInLoop &&
                              !named(finding.evidence, "steps_apart");
  const char* step = goes_by_rounds ? "round" : "step";
  const auto grown = named(finding.evidence, "grown_bytes"),
             steps = named(finding.evidence, "steps");
  if (grown && steps) {
    out.push_back(fmt::format(
        "Grew by {} in {} after a warm-up of {}; {} are live after the last allocation (confidence "
        "{:.2f})",
        format_bytes(*grown), format_plural(*steps, step),
        format_count(named(finding.evidence, "warm_up_steps").value_or(0)),
        format_bytes(finding.bytes.value_or(0)), finding.confidence));
  }
  if (const auto processes = named(finding.evidence, "processes")) {
    out.push_back(fmt::format("{} processes do the same, and hold {} together; these are the figures of the worst",
                              format_count(*processes),
                              format_bytes(named(finding.evidence, "all_processes_bytes").value_or(0))));
  }
  if (const auto round = named(finding.facts, "round"); round && !goes_by_rounds) {
    const bool is_after = named(finding.facts, "steps_from") == kRoundsAfterSteps;
    out.push_back(fmt::format("A step is one round of {} here: {}", *round,
                              is_after ? "it comes after the last step of the program"
                                       : "the program marks no steps, or too few"));
  }
  if (!finding.lines.empty()) out.push_back("Lines: " + lines_text(finding.lines, step));
  const auto module = named(finding.facts, "module");
  const auto in_module = [&](const char* are_made) {
    return module ? fmt::format("; {} made in module {}", are_made, *module) : "";
  };
  if (const auto made = named(finding.facts, "made_in"))
    out.push_back(fmt::format("Made in a library: {}", *made));
  const auto survivors = named(finding.rates, "survivors_a_step");
  if (survivors && *survivors > 0)
    out.push_back(survivors_text(*survivors, step) + in_module("most are"));
  if (const auto replaced = named(finding.evidence, "replaced_blocks")) {
    const uint64_t a_step = named(finding.evidence, "bytes_a_step").value_or(0);
    out.push_back(replaced_text(*replaced, a_step, step) +
                  in_module(*replaced == 1 ? "it is" : "most are"));
  }
  if (const auto holder = named(finding.facts, "holder"); holder && !holder->empty()) {
    out.push_back(fmt::format("Held by: {}", *holder));
    const auto seen = named(finding.evidence, "seen_blocks");
    const auto all = named(finding.evidence, "live_blocks");
    if (seen && all) {
      out.push_back(fmt::format("The looks came too early: they saw {} of {}; gpumemprof run "
                                "--explain-leaks looks to the end",
                                format_count(*seen), format_plural(*all, "block")));
    }
  }
  if (const auto views = named(finding.evidence, "viewed_blocks"); views && *views != 0) {
    const auto of_each = [&](const char* sum) {
      return format_bytes(named(finding.evidence, sum).value_or(0) / *views);
    };
    out.push_back(fmt::format("{} of {} {} kept by views that show {} of {}",
                              format_plural(*views, "storage"), of_each("viewed_bytes"),
                              *views == 1 ? "is" : "are", of_each("shown_bytes"),
                              *views == 1 ? "it" : "each"));
  }
  if (const auto others = named(finding.facts, "grows_with_it"))
    out.push_back(fmt::format("Grows with it, and is made anew in each step: {}", *others));
  if (const auto others = named(finding.facts, "keeps_also"))
    out.push_back(fmt::format("The line keeps more of other memory, too: {}", *others));
  const auto entries = named(finding.evidence, "entries"),
             full = named(finding.evidence, "full_bytes");
  if (entries && full) {
    const auto until_full = named(finding.evidence, "steps_until_full");
    const auto limit = named(finding.facts, "entries_limit");
    out.push_back(fmt::format(
        "{} of at most {} entries at the last look{}; at this size about {} when it is full{}",
        format_count(*entries), format_count(named(finding.evidence, "most_entries").value_or(0)),
        limit ? fmt::format(" (by its {})", *limit) : "", format_bytes(*full),
        until_full ? fmt::format(", after about {}",
                                 format_plural(*until_full, fmt::format("more {}", step)))
                   : ""));
  }
  const auto left = named(finding.evidence, "steps_until_limit"),
             limit = named(finding.evidence, "limit_bytes");
  if (left && limit) {
    const auto seconds = named(finding.evidence, "seconds_until_limit");
    if (seconds && *seconds > kFarS)
      out.push_back(fmt::format("The limit of {} is more than {} days away", format_bytes(*limit),
                                kFarS / kDayS));
    else
      out.push_back(fmt::format("The limit of {} is reached {}in {}{}", format_bytes(*limit),
                                named(finding.evidence, "all_processes_bytes_a_step")
                                    ? "by all of them together "
                                    : "",
                                steps_text(*left, step),
                                seconds ? pace_text(*seconds) : ""));
  } else if (const auto why = named(finding.facts, "limit")) {
    out.push_back(fmt::format("Limit: {}", *why));
  }
  return out;
}

}  // namespace gpumemprof
