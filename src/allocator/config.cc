#include "allocator/config.h"

#include <algorithm>
#include <bit>

namespace gpumemprof {
namespace {

// Constants of PyTorch's c10/core/AllocatorConfig.h and CUDACachingAllocator.cpp.
constexpr uint64_t kMinBlockBytes = 512;
constexpr uint64_t kSmallBytes = kMiB;  // up to it a block comes from a small segment
constexpr uint64_t kSmallSegmentBytes = 2 * kMiB;
constexpr uint64_t kMinLargeBytes = 10 * kMiB;  // from it a segment has the size of its block
constexpr uint64_t kRoundLargeBytes = 2 * kMiB;

uint64_t round_up(uint64_t value, uint64_t unit) {
  // Sizes come from files: one near 2^64 stays what it is instead of becoming small.
  return value > kUnlimited - unit ? value / unit * unit : (value + unit - 1) / unit * unit;
}

/// `divisions` steps between two powers of two; a power itself stays.
uint64_t round_to_division(uint64_t size, uint64_t divisions) {
  if (std::has_single_bit(size)) return size;
  const uint64_t floor = std::bit_floor(size);
  const uint64_t step = floor >> (std::bit_width(divisions) - 1);
  if (step == 0) return floor << 1;
  return round_up(size, step);
}

}  // namespace

uint64_t round_size(uint64_t requested_bytes, const AllocatorConfig& config,
                    const Release& release) {
  if (requested_bytes < kMinBlockBytes) return kMinBlockBytes;
  const int log2 = std::bit_width(requested_bytes) - 1;
  const uint64_t divisions = config.roundup_divisions[std::clamp(log2 - 20, 0, 15)];
  if (divisions == 1 && release.one_division_is_unrounded && requested_bytes > kMinBlockBytes) {
    return requested_bytes;
  }
  if (divisions > 1 && requested_bytes / divisions >= kMinBlockBytes &&
      requested_bytes > kMinBlockBytes * divisions) {
    return round_to_division(requested_bytes, divisions);
  }
  return round_up(requested_bytes, kMinBlockBytes);
}

uint64_t segment_size(uint64_t size_bytes, const AllocatorConfig& config) {
  if (size_bytes <= kSmallBytes) return kSmallSegmentBytes;
  if (size_bytes < kMinLargeBytes) return config.large_segment_bytes;
  return round_up(size_bytes, kRoundLargeBytes);
}

AllocatorConfig recorded_config(const RecordedSettings& settings, const Release& release) {
  if (!settings.conf.empty()) {
    if (auto parsed = parse_settings(settings.conf, release)) return *std::move(parsed);
  }
  AllocatorConfig config;
  if (settings.max_split_size_bytes > 0) {
    config.max_split_size_bytes = static_cast<uint64_t>(settings.max_split_size_bytes);
  }
  config.garbage_collection_threshold = settings.garbage_collection_threshold;
  config.expandable_segments = settings.expandable_segments;
  for (const auto& [bucket_mib, divisions] : settings.roundup_power2_divisions) {
    if (std::has_single_bit(bucket_mib) && bucket_mib <= 32768) {
      config.roundup_divisions[std::bit_width(bucket_mib) - 1] = divisions;
    }
  }
  return config;
}

}  // namespace gpumemprof
