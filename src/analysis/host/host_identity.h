// The host memory of one process, and of a cgroup, as sums with signs: RSS = pinned + shared + pages
// of files + what malloc has in use + what it keeps + Python's arenas + the rest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace gpumemprof {

/// Bytes, or why they are not known.
struct HostTerm {
  std::optional<uint64_t> bytes;
  std::string why;  ///< empty where there is a value

  static HostTerm of(uint64_t bytes) { return {bytes, {}}; }
  static HostTerm unknown(std::string why) { return {std::nullopt, std::move(why)}; }
};

/// A process at one moment, as kernel, driver and malloc said.
struct HostMoment {
  uint64_t time_ns = 0;  ///< on the recording's clock
  /// Pages in memory, and by class; without what lies in swap.
  HostTerm resident, anonymous, file, shared;
  HostTerm swapped;
  /// By the driver's functions, of which `shared` has the pages; and what the program had pinned of
  /// its own pages.
  HostTerm pinned, registered;
  /// glibc's: blocks in use, and free blocks that it has not given back.
  HostTerm malloc_live, malloc_kept;
  /// The interpreter's, with the stacks of Python's frames.
  HostTerm python_arenas;
  /// PyTorch's cache of pinned memory, in use and in all: part of what the driver pinned.
  HostTerm pinned_used, pinned_cache;
  // Where the page tables were walked: pages shared by n processes count 1/n.
  HostTerm proportional, proportional_anonymous, proportional_file, proportional_shared;
  HostTerm private_clean, private_dirty, locked, copied_file;
  std::string most_copied_file;
};

/// What the samples have of a process, by the names of their fields.
inline constexpr std::pair<const char*, HostTerm HostMoment::*> kHostTerms[] = {
    {"resident_bytes", &HostMoment::resident},
    {"anonymous_bytes", &HostMoment::anonymous},
    {"file_bytes", &HostMoment::file},
    {"shared_bytes", &HostMoment::shared},
    {"swapped_bytes", &HostMoment::swapped},
    {"proportional_bytes", &HostMoment::proportional},
    {"proportional_anonymous_bytes", &HostMoment::proportional_anonymous},
    {"proportional_file_bytes", &HostMoment::proportional_file},
    {"proportional_shared_bytes", &HostMoment::proportional_shared},
    {"private_clean_bytes", &HostMoment::private_clean},
    {"private_dirty_bytes", &HostMoment::private_dirty},
    {"locked_bytes", &HostMoment::locked},
    {"copied_file_bytes", &HostMoment::copied_file},
};
inline constexpr size_t kFirstOfWalk = 5;  ///< of these

/// The sum. What is not known has a reason, and its bytes are in the rest. Of `shared`, what is not
/// pinned.
struct HostIdentity : HostMoment {
  /// resident less all that is known of it; negative where more is known than is resident: blocks
  /// that malloc has in use need not have been written to, so need no pages.
  std::optional<int64_t> rest_bytes;
};
HostIdentity host_identity(const HostMoment& moment);

/// What a cgroup is charged for at one moment.
struct CgroupMoment {
  uint64_t time_ns = 0;
  HostTerm limit, used, anonymous, file, reclaimable, shared, kernel, swapped;
};
/// used less the four classes; nothing where one is not known.
std::optional<int64_t> rest_of(const CgroupMoment& moment);

}  // namespace gpumemprof
