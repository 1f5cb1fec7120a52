#include "estimate/merge.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace gpumemprof {
namespace {

constexpr __int128 kMostStorageBytes = 1ll << 50;  // of a storage, as in the file

/// The same but for sizes.
bool same_event(const TracedEvent& a, const TracedEvent& b) {
  return a.kind == b.kind && a.index == b.index && a.stream == b.stream && a.phase == b.phase;
}
/// Groups may follow the batch: a convolution with weights of each sample's own is one of the
/// batch.
bool same_call(const ConvolutionCall& a, const ConvolutionCall& b) {
  return a.part == b.part && a.shape == b.shape && a.kernel_elements == b.kernel_elements &&
         (a.groups > 1) == (b.groups > 1);
}

/// The tensor that shrinks most at the larger batch, as a fixed number of tokens split into batches
/// makes them; a line through such sizes ends below zero. A hundredth of all bytes may shrink.
std::optional<std::pair<uint64_t, uint64_t>> falls_with_batch(const StepTrace& low,
                                                              const StepTrace& high) {
  constexpr double kMostShare = 0.01;
  double all = 0, fallen = 0;
  std::pair<uint64_t, uint64_t> most{};
  for (size_t i = 0; i < low.events.size(); ++i) {
    if (low.events[i].kind != TracedEvent::Kind::kAlloc) continue;
    const uint64_t before = low.events[i].bytes, now = high.events[i].bytes;
    all += static_cast<double>(before);
    if (now >= before) continue;
    fallen += static_cast<double>(before - now);
    if (before - now > most.first - most.second) most = {before, now};
  }
  return fallen > kMostShare * all ? std::optional(most) : std::nullopt;
}

}  // namespace

Result<ScaledTrace> ScaledTrace::merge(StepTrace low, const StepTrace& high) {
  const auto differs = [](std::string how) {
    return fail(ErrorCode::kUnsupported,
                "the traces at two batches cannot be merged: " + std::move(how));
  };
  if (low.facts.batch == 0 || low.facts.batch >= high.facts.batch)
    return differs("the second batch size must be larger than the first");
  const auto [a, b] = std::ranges::mismatch(low.events, high.events, same_event);
  if (a != low.events.end() || b != high.events.end()) {
    return differs("they differ from event " + std::to_string(a - low.events.begin()) + " of " +
                   std::to_string(low.events.size()) + " and " +
                   std::to_string(high.events.size()));
  }
  if (const auto falls = falls_with_batch(low, high))
    return differs("a tensor of " + std::to_string(falls->first) + " bytes at batch " +
                   std::to_string(low.facts.batch) + " has " + std::to_string(falls->second) +
                   " at batch " + std::to_string(high.facts.batch) +
                   ": sizes do not grow with the batch");
  if (!std::ranges::equal(low.convolutions, high.convolutions, same_call))
    return differs("their convolutions differ");
  ScaledTrace merged;
  merged.high_batch_ = high.facts.batch;
  merged.high_bytes_.reserve(high.events.size());
  for (const TracedEvent& event : high.events) merged.high_bytes_.push_back(event.bytes);
  merged.high_convolutions_ = high.convolutions;
  merged.low_ = std::move(low);
  return merged;
}

uint64_t ScaledTrace::scaled(uint64_t low_bytes, uint64_t high_bytes, uint64_t batch) const {
  const auto at_low = static_cast<__int128>(low_bytes);
  const __int128 rise = static_cast<__int128>(high_bytes) - at_low;
  const __int128 span =
      static_cast<__int128>(high_batch_) - static_cast<__int128>(low_.facts.batch);
  const __int128 beyond = static_cast<__int128>(batch) - static_cast<__int128>(low_.facts.batch);
  const __int128 product = rise * beyond;
  const __int128 rounded = (2 * product + (product < 0 ? -span : span)) / (2 * span);
  return static_cast<uint64_t>(std::clamp<__int128>(at_low + rounded, 0, kMostStorageBytes));
}

StepTrace ScaledTrace::at(uint64_t batch) const {
  StepTrace result = low_;
  result.facts.batch = batch;
  for (size_t i = 0; i < result.events.size(); ++i) {
    if (result.events[i].kind == TracedEvent::Kind::kAlloc)
      result.events[i].bytes = scaled(low_.events[i].bytes, high_bytes_[i], batch);
  }
  for (size_t i = 0; i < result.convolutions.size(); ++i) {
    ConvolutionCall& call = result.convolutions[i];
    const ConvolutionCall& high = high_convolutions_[i];
    call.input_bytes = scaled(call.input_bytes, high.input_bytes, batch);
    call.output_bytes = scaled(call.output_bytes, high.output_bytes, batch);
    call.weight_bytes = scaled(call.weight_bytes, high.weight_bytes, batch);
    call.groups = scaled(call.groups, high.groups, batch);
    call.in_channels = scaled(call.in_channels, high.in_channels, batch);
    call.out_channels = scaled(call.out_channels, high.out_channels, batch);
  }
  return result;
}

}  // namespace gpumemprof
