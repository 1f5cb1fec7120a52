// The settings of the caching allocator that the simulation follows, and the text they come from.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "allocator/release.h"
#include "base/error.h"
#include "base/size.h"
#include "trace/allocator_trace.h"

namespace gpumemprof {

inline constexpr uint64_t kUnlimited = std::numeric_limits<uint64_t>::max();

/// Everything that decides where a block goes. The defaults are PyTorch's.
struct AllocatorConfig {
  uint64_t max_split_size_bytes = kUnlimited;
  /// How much larger than asked a block above max_split_size may be; absent: large_segment_bytes.
  std::optional<uint64_t> max_non_split_rounding_bytes;
  uint64_t large_segment_bytes = 20 * kMiB;
  double garbage_collection_threshold = 0;  ///< acts only where memory_fraction is set
  /// Divisions of the powers of two from 1 MiB to 32 GiB; 0: round to 512 bytes.
  std::array<uint64_t, 16> roundup_divisions{};
  bool expandable_segments = false;
  /// Bytes of the device that this process can have; absent: it never runs out.
  std::optional<uint64_t> capacity_bytes;
  std::optional<double> memory_fraction;  ///< of capacity_bytes
  /// A request that the driver has no memory for fails at once: nothing is given back and nothing
  /// is counted.
  bool throws_at_refusal = false;
  /// What an expandable segment reserves of addresses: bytes, or a share of capacity_bytes; both
  /// absent: nine eighths.
  std::optional<uint64_t> reserve_bytes;
  std::optional<double> reserve_share;
  /// Keys that were accepted and change nothing in a simulation of one device's addresses.
  std::vector<std::string> keys_without_effect;
};

/// Reads the text of PYTORCH_CUDA_ALLOC_CONF ("expandable_segments:True,max_split_size_mb:128") as
/// `release` does: the same keys and values are accepted. kUsage, one sentence, where it would
/// raise; kUnsupported where it is valid and cannot be simulated (backend:cudaMallocAsync).
Result<AllocatorConfig> parse_settings(std::string_view text, const Release& release);

/// The settings under which a snapshot was recorded: its text where it has one, else its fields.
/// Text that `release` refuses falls back to the fields too: the recorded process ran with them.
AllocatorConfig recorded_config(const RecordedSettings& settings, const Release& release);

/// The size of the block for a request, before a segment is chosen.
uint64_t round_size(uint64_t requested_bytes, const AllocatorConfig& config,
                    const Release& release);

/// Bytes that are asked of the driver to serve a block of `size_bytes`.
uint64_t segment_size(uint64_t size_bytes, const AllocatorConfig& config);

}  // namespace gpumemprof
