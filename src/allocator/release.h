// How PyTorch's CUDA caching allocator differs from release to release, as data.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace gpumemprof {

/// Which of several free blocks of one size serves a request.
enum class TieRule : uint8_t {
  kAddress,     ///< the lowest address, so the driver's choice of addresses matters
  kBlockAge,    ///< the block object that was made first: a split makes one for the part handed out
  kSegmentAge,  ///< the segment that was made first, then the lowest offset
};

/// One minor release of PyTorch 2 and the rules in which it differs from its neighbours.
struct Release {
  uint16_t minor = 0;                      ///< 13 is PyTorch 2.13
  TieRule ties = TieRule::kAddress;        ///< as above
  bool one_division_is_unrounded = false;  ///< roundup_power2_divisions:1 keeps odd sizes
  bool rest_fills_last_bucket = false;     ///< in [256:1,>:2], `>` overwrites the bucket of 256
  bool twenty_mb_is_refused = false;       ///< max_split_size_mb:20 is an error
  /// A request in a private pool that does not fit gives cached memory back and tries again.
  bool retries_in_pools = false;
  bool names_pools = false;  ///< trace entries carry pool_id
  bool operator==(const Release&) const = default;
};

/// "2.13".
std::string release_name(const Release& release);

/// All that are known, oldest first (2.1 … 2.15).
std::span<const Release> known_releases();
const Release& newest_release();

/// "2.13", "2.13.1", "torch 2.13" or "latest". kUsage names the releases that are known.
Result<Release> find_release(std::string_view text);

/// Those that a reader's hint leaves possible ("torch 2.10 or 2.11", "torch 2.2 to 2.4"), oldest
/// first; all where it says nothing.
std::vector<Release> releases_for_hint(std::string_view hint);

}  // namespace gpumemprof
