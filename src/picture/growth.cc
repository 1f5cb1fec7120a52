#include "picture/growth.h"

#include <algorithm>
#include <span>
#include <string>

#include "analysis/statistics/statistics.h"

namespace gpumemprof {
namespace {

constexpr double kLeastBytes = 1 << 20;

}  // namespace

void LiveGrowth::add(double seconds, uint64_t live_bytes) {
  if (!began_) {
    began_ = true, window_begin_ = seconds;
    floor_ = static_cast<double>(live_bytes);
  }
  close_windows(seconds);
  live_ = static_cast<double>(live_bytes);
  floor_ = std::min(floor_, live_);
}

void LiveGrowth::close_windows(double seconds) {
  while (seconds - window_begin_ >= window_seconds_) {
    floors_.push_back(floor_);
    floor_ = live_;
    window_begin_ += window_seconds_;
    if (floors_.size() < kMostWindows) continue;
    for (size_t i = 0; i < kMostWindows / 2; ++i)
      floors_[i] = std::min(floors_[2 * i], floors_[2 * i + 1]);
    floors_.resize(kMostWindows / 2);
    window_seconds_ *= 2;
  }
}

FollowedGrowth LiveGrowth::judge() const {
  if (floors_.size() < kLeastWindows) {
    return {.why_none = "growth is known after " +
                        std::to_string(static_cast<int>(kWindowSeconds * kLeastWindows)) + " s"};
  }
  const std::span<const double> floors = std::span(floors_).subspan(floors_.size() / 4);
  std::vector<double> times;
  for (size_t i = 0; i < floors.size(); ++i)
    times.push_back(static_cast<double>(i) * window_seconds_);
  const auto grown = growth_of_floor(floors);
  if (!grown || grown->bytes < kLeastBytes) return {.why_none = "live memory does not grow"};
  return {.bytes_per_second = theil_sen_slope(times, floors)};
}

}  // namespace gpumemprof
