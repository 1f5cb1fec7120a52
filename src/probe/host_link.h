// How the library that `run --host` adds (src/host_blocks) passes what the program takes from malloc
// and mmap to the probe. It finds the probe by one symbol; without a probe it only forwards.
//
// All functions may be called from any thread and from a forked child, never block, allocate nothing
// and preserve errno.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace gpumemprof::probe {

/// Smaller blocks and maps are not recorded.
inline constexpr size_t kHostBlockBytes = 64 << 10;

/// Each is a memory of its own in the recording.
enum HostMemory : uint32_t {
  kHostMalloc = 0,
  kHostAnonymousMaps = 1,
  kHostFileMaps = 2,
  kHostUnseenMalloc = 3,  // a note of size 0; the library's name follows
  kHostUnseenMallocAndMaps = 4,
  kHostMemories = 5
};
/// In the recording; the reader's names (trace/tables.h) are compared with these.
inline constexpr const char* kHostMemoryNames[kHostMemories] = {"malloc", "anonymous maps",
                                                                "file maps", "malloc not recorded: ",
                                                                "malloc and mmap not recorded: "};
/// The file of the frame that names the file of a map.
inline constexpr const char* kFileMapPlace = "<file map>";

struct HostLink {
  uint32_t version;
  /// A block of malloc's. False: it is not recorded, and neither need its free be told.
  bool (*took)(void* block, size_t size_bytes, const void* caller);
  /// Before a block is freed. False: it was not recorded, or is not any more.
  bool (*gave)(void* block, size_t* size_bytes);
  /// What malloc refused.
  void (*refused)(size_t size_bytes);
  /// A new map; `fd` -1: anonymous.
  void (*mapped)(void* begin, size_t size_bytes, int fd, const void* caller);
  /// Before addresses are unmapped, or replaced. The bytes of recorded maps there; `*memory` has
  /// whose they were.
  size_t (*unmapped)(void* begin, size_t size_bytes, uint32_t* memory);
  /// The map that unmapped() told of lies at `begin` now.
  void (*moved)(void* begin, size_t size_bytes, uint32_t memory);
  /// unmapped() was told, and the kernel refused.
  void (*lost)();
  /// Malloc is another library's, whose calls do not come here: its file name, for good.
  /// `with_maps`: nor do those of mmap.
  void (*unseen)(const char* library, bool with_maps);
  /// Maps that code in [begin, end) takes are parts of what another malloc hands out.
  void (*leave)(const void* begin, const void* end);
  /// Where the caller itself lies: native stacks leave its frames out.
  void (*here)(const void* begin, const void* end);
};
inline constexpr uint32_t kHostLinkVersion = 2;

}  // namespace gpumemprof::probe

/// The probe's; null if its version differs from the one that the caller was built with.
extern "C" __attribute__((weak)) const gpumemprof::probe::HostLink* gpumemprof_host_link(
    uint32_t version);
