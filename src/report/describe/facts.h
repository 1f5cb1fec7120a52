// Sentences that several reports share, so that they never contradict each other.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/analysis.h"

namespace gpumemprof {

/// "3.214 s after the first event"; of a sample that was taken before it "3.214 s before the first event".
std::string moment_text(const Analysis& analysis, uint64_t time_ns);

/// Seconds from the start; below 0 before it.
inline double second_of(const Analysis& analysis, uint64_t time_ns) {
  return (static_cast<double>(time_ns) - static_cast<double>(analysis.start_time_ns)) * 1e-9;
}

/// "Peak 412 MiB on cpu, 3.214 s after the first event", of several processes with ", process 12 (python
/// train.py)"; without times " (event 48,120 of 96,002)". By an allocator's history "Peak 412 MiB
/// on cuda:0 (requested bytes)", as what it allocates is rounded. Of a moment "Live 412 MiB …".
std::string peak_sentence(const Analysis& analysis, const Tables& tables,
                          const DeviceAnalysis& device);

/// All of the device's, of every kind.
uint64_t event_count(const DeviceAnalysis& device);

/// True if the peak was before the first event, so that no event and no time belongs to the
/// peak.
bool is_peak_before_events(const Analysis& analysis, const DeviceAnalysis& device);
/// True if the source has only the live memory of one moment: all of it is in the
/// state before the first event, and no event changes it. Its peak is unknown.
bool is_moment(const DeviceAnalysis& device);

/// One line: "Nothing was lost.", "LOST: …" or, where no number is known, "Not complete: …"; with
/// the first kReasonsInSentence reasons.
std::string loss_sentence(const Loss& loss);
/// As loss_sentence() has it: "12 events: REASON (12 events)". Empty where no event is missing.
std::string lost_words(const Loss& loss);
inline constexpr size_t kReasonsInSentence = 3;
/// Why there is no end of step `step`: one phrase.
std::string no_such_step_text(const DeviceAnalysis& device, uint64_t step);

/// A reason as loss_sentence() writes it.
std::string reason_text(const LossReason& reason);
inline bool is_complete(const Loss& loss) {
  return loss.has_every_event() && loss.bytes == 0 && loss.reasons.empty();
}

/// Caveats about the figures: refused requests, missed frees, blocks from before,
/// missing stacks, a dropped beginning. One printable sentence each; most often none.
/// Code is named relative to `working_folder`.
std::vector<std::string> caveats(const Analysis& analysis, const Tables& tables,
                                 std::string_view working_folder = "");

/// What has no stack was made on threads of JAX.
bool is_on_threads_of_jax(const DeviceAnalysis& device, const Tables& tables);

/// How it gets one.
inline constexpr std::string_view kJaxOnYourThread =
    "jax.config.update(\"jax_cpu_enable_async_dispatch\", False) runs operations whose inputs are "
    "ready (jax.block_until_ready) on your thread, with your lines";

/// True where all that was live at the peak and has no stack is older than the recording.
bool is_no_stack_from_before(const DeviceAnalysis& device);
/// "allocated before the recording began: unknown 3.15 GiB, parameter 1.58 GiB", of what was live
/// at the peak and has no stack; as far as either is known.
std::string no_stack_words(const DeviceAnalysis& device, const Tables& tables);

/// Wall-clock microseconds since 1970, where the process knew the offset of its clock.
struct WallTime {
  bool known = false;
  int64_t time_us = 0;
};
WallTime wall_time(const Process& process, uint64_t time_ns);

/// Peak of the bytes reserved from the device, if the framework or a replay knows it.
std::optional<std::string> peak_reserved_text(const DeviceAnalysis& device);

/// Why no time of the device is known: one phrase; empty where times are known.
std::string why_no_times(const Analysis& analysis, const DeviceAnalysis& device);

/// Events a second over the span in which the device had events; 0 where that is a single moment.
/// Absent where the events have no times.
std::optional<double> rate_per_second(uint64_t amount, const Analysis& analysis,
                                      const DeviceAnalysis& device);

/// "Score: 8.2 of 10 (growth 10.0, …)." or "Score: none, because ….", without a newline.
std::string score_sentence(const Score& score);

inline uint64_t action_count(const DeviceFigures& figures, Action action) {
  return figures.actions[static_cast<size_t>(action)];
}

}  // namespace gpumemprof
