#include "cli/export.h"

#include <charconv>
#include <string>

#include "base/duration.h"
#include "report/describe/facts.h"

namespace gpumemprof {
namespace {

constexpr double kMostSeconds = 1e9;

std::unexpected<Error> not_a_moment(std::string_view text) {
  return fail(ErrorCode::kUsage, "'" + std::string(text) +
                                     "' is not a moment: write peak, last-alloc, end, total, step:N, or "
                                     "a time after the first event such as 1.5s or 250ms");
}

template <class Number>
bool parse_all(std::string_view text, Number* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

Result<MomentArgument> parse_moment(std::string_view text) {
  MomentArgument at;
  if (text.empty() || text == "peak") return at;
  for (const auto& [word, kind] :
       {std::pair<std::string_view, MomentArgument::Kind>{"last-alloc",
                                                          MomentArgument::kLastAllocation},
        {"end", MomentArgument::kEnd},
        {"total", MomentArgument::kTotal}}) {
    if (text != word) continue;
    at.kind = kind;
    return at;
  }
  at.kind = MomentArgument::kRequested;
  constexpr std::string_view kStep = "step:";
  if (text.starts_with(kStep)) {
    if (!parse_all(text.substr(kStep.size()), &at.request.value)) return not_a_moment(text);
    return at;
  }
  at.request.kind = MomentRequest::kTime;
  double unit_ns = 1e9;
  std::string_view number = text;
  for (const auto& [suffix, ns] :
       {std::pair<std::string_view, double>{"ms", 1e6}, {"us", 1e3}, {"ns", 1}, {"s", 1e9}}) {
    if (!number.ends_with(suffix)) continue;
    number.remove_suffix(suffix.size());
    unit_ns = ns;
    break;
  }
  double value = 0;
  if (!parse_all(number, &value) || !(value >= 0) || value * unit_ns > kMostSeconds * 1e9) {
    return not_a_moment(text);
  }
  at.request.value = static_cast<uint64_t>(value * unit_ns + 0.5);
  return at;
}

std::string moment_words(const MomentArgument& at) {
  if (at.kind == MomentArgument::kPeak) return "at the peak";
  if (at.kind == MomentArgument::kLastAllocation) return "after the last allocation";
  if (at.kind == MomentArgument::kEnd) return "at the end";
  if (at.kind == MomentArgument::kTotal) return "allocated over the whole run";
  if (at.request.kind == MomentRequest::kStepEnd) {
    return "at the end of step " + std::to_string(at.request.value);
  }
  return format_duration(at.request.value) + " after the first event";
}

Result<const LiveMoment*> requested_moment(const DeviceAnalysis& device, const Analysis& analysis,
                                           const MomentRequest& request) {
  if (!device.live_moments.empty() && device.live_moments[0].is_reached) {
    return &device.live_moments[0];
  }
  if (request.kind == MomentRequest::kTime) {
    if (!analysis.source.can.times) return fail(ErrorCode::kUsage, "its events have no times");
    return fail(ErrorCode::kUsage, "its last event is " +
                                       moment_text(analysis, analysis.last_time_ns) + ", before " +
                                       format_duration(request.value));
  }
  return fail(ErrorCode::kUsage, no_such_step_text(device, request.value));
}

}  // namespace gpumemprof
