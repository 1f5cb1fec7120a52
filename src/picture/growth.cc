#include "picture/growth.h"

#include <algorithm>
#include <span>

#include "analysis/statistics/growth.h"
#include "analysis/statistics/statistics.h"

namespace gpumemprof {
namespace {

constexpr double kLeastBytes = 1 << 20;

}  // namespace

void LiveGrowth::add(double seconds, uint64_t live_bytes) {
  const auto live = static_cast<double>(live_bytes);
  if (!began_) {
    began_ = true, window_begin_ = seconds, floor_ = live;
    return;
  }
  close_windows(seconds);
  floor_ = std::min(floor_, live);
}

void LiveGrowth::close_windows(double seconds) {
  bool any = false;
  while (seconds - window_begin_ >= window_seconds_) {
    any = true;
    floors_.push_back(floor_);
    window_begin_ += window_seconds_;
    if (floors_.size() < kMostWindows) continue;
    for (size_t i = 0; i < kMostWindows / 2; ++i)
      floors_[i] = std::min(floors_[2 * i], floors_[2 * i + 1]);
    floors_.resize(kMostWindows / 2);
    window_seconds_ *= 2;
  }
  if (!any) return;
  floor_ = 1e300;  // add() puts the value of this moment
  judge();
}

void LiveGrowth::judge() {
  rate_.reset();
  if (floors_.size() < kLeastWindows) return;
  why_none_ = "live memory does not grow";
  const std::span<const double> floors = std::span(floors_).subspan(floors_.size() / 4);
  std::vector<double> times;
  for (size_t i = 0; i < floors.size(); ++i)
    times.push_back(static_cast<double>(i) * window_seconds_);
  const auto grown = growth_of_floor(floors);
  if (!grown || grown->bytes < kLeastBytes) return;
  rate_ = theil_sen_slope(times, floors);
  why_none_.clear();
}

}  // namespace gpumemprof
