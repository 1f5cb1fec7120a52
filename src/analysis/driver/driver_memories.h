// What the CUDA driver handed out, by the bytes that are really the device's, and who asked for
// them. One pass beside the other analyses; memory for live blocks and libraries.
//
// The rules: pages of 2 MiB that blocks of cuMemAlloc lie in, since the driver hands those out;
// handles of cuMemCreate until they are released and mapped nowhere; what pools and graphs have
// reserved, not the blocks in them; arrays by their descriptors. Imported memory is the exporter's,
// addresses hold nothing by themselves, managed and pinned memory are told apart.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analysis/driver/device_truth.h"
#include "analysis/driver/segment_use.h"
#include "analysis/statistics/timeline.h"
#include "base/pci_address.h"
#include "trace/event.h"
#include "trace/live_state.h"
#include "trace/tables.h"

namespace gpumemprof {

/// What a memory of the driver's is for; in the order of kDriverKindNames.
enum class DriverUse : uint8_t {
  kMemory,
  kArrays,
  kHandles,
  kPools,
  kGraphs,
  kInPools,
  kManaged,
  kPinned,
  kRegistered,
  kImported,
  kAddressSpace,
  kMapped,
  kContexts,
  kUnmeasured,
  kModules,
  kDeviceUsed,
};
inline constexpr size_t kDriverUses = 16;
/// As the recording calls them, after "driver ".
inline constexpr std::array<const char*, kDriverUses> kDriverKindNames = {"memory",
                                                                          "arrays",
                                                                          "handles",
                                                                          "pools",
                                                                          "graphs",
                                                                          "blocks in pools",
                                                                          "managed memory",
                                                                          "pinned host memory",
                                                                          "registered host memory",
                                                                          "imported memory",
                                                                          "address space",
                                                                          "mapped addresses",
                                                                          "contexts",
                                                                          "contexts not measured",
                                                                          "modules",
                                                                          "device used"};

/// Whose bytes are the device's for as long as the process has them.
inline bool is_physical(DriverUse use) { return use <= DriverUse::kGraphs; }

inline constexpr uint64_t kDriverPageBytes = 2 << 20;

/// A library that called the driver, with the device's bytes that it has.
struct DriverLibrary {
  std::string name;
  uint64_t bytes = 0;
  bool is_framework = false;
};

/// One device of one process at one moment.
struct DriverMoment {
  uint64_t time_ns = 0;
  uint64_t event = 0;
  std::array<uint64_t, kDriverUses> live_bytes = {};  ///< by DriverUse
  uint64_t rounding_bytes = 0;  ///< of the pages of kMemory, what was not requested
  uint64_t unmeasured_contexts = 0;
  std::vector<DriverLibrary> libraries;  ///< the largest first; they add up to what was asked for
  /// What the framework's own allocator said, where one was recorded on this device.
  std::optional<uint64_t> framework_allocated_bytes, framework_reserved_bytes;
  /// Of what it has reserved and not allocated: what lies in segments that live blocks pin. Only
  /// where the segments that the driver handed out are those that the allocator counts.
  std::optional<uint64_t> framework_unservable_bytes;
  /// What the driver itself called used, where nothing came or went since it was asked.
  std::optional<uint64_t> device_used_bytes;
  std::optional<DeviceTruth> truth;  ///< of DriverDevice::sampled alone

  uint64_t of(DriverUse use) const { return live_bytes[static_cast<size_t>(use)]; }
  uint64_t asked_bytes() const;  ///< of all that is physical
};

/// The sum, as far as it can be made. Terms without a value have a reason.
struct DeviceIdentity {
  std::optional<uint64_t> device_used_bytes, reserved_bytes, others_bytes, process_bytes;
  uint64_t contexts_bytes = 0, modules_bytes = 0;  ///< estimates
  bool contexts_are_known = true;                  ///< false: one could not be measured
  uint64_t libraries_bytes = 0;                    ///< those that are no framework's
  uint64_t rounding_bytes = 0;
  uint64_t framework_bytes = 0;  ///< what the framework's libraries have of the driver
  std::optional<uint64_t> framework_allocated_bytes, framework_cached_bytes;
  std::optional<uint64_t> framework_unservable_bytes;  ///< part of what is cached
  std::optional<int64_t> framework_beside_bytes;       ///< not in the allocator's own count
  /// process_bytes less all that is explained; negative where more is explained than used. As below
  /// unknown where a context is, whose bytes would be in it.
  std::optional<int64_t> unexplained_bytes;
  /// Where a context's size is unknown: process_bytes less all else that is explained.
  std::optional<int64_t> contexts_and_unexplained_bytes;
  /// Of the device's bytes those of no process that the driver names; negative where it names more
  /// than there is.
  std::optional<int64_t> of_no_process_bytes;
  /// Where process_bytes is unknown: the device's used bytes less all that is explained.
  std::optional<int64_t> others_and_unexplained_bytes;
  std::vector<std::pair<std::string, std::string>> unknown;  ///< term, why

  /// All that is known of this process; without contexts where one is not.
  uint64_t explained_bytes() const;
};
DeviceIdentity identity_of(const DriverMoment& moment);

struct DriverDevice {
  uint32_t process = 0;             ///< index in Tables::processes
  int8_t type = 1;                  ///< Device::type: 1 of CUDA's and HIP's, 12 of Level Zero's
  int8_t index = 0;                 ///< CUDA's number, or the like
  std::optional<PciAddress> place;  ///< by which it is found among NVML's
  uint64_t refused = 0;             ///< how often the driver had no memory
  DriverMoment peak;                ///< when the most was physical
  DriverMoment end;
  std::optional<DriverMoment> asked;  ///< when the driver last said what the device uses
  /// When a sample was taken that tells what the process uses: of these the one with the most.
  std::optional<DriverMoment> sampled;
  /// Over time: all that is physical, and what the framework's allocator has reserved. No buckets
  /// where nothing was told.
  Timeline physical, reserved;
};
/// "cuda:0", "xpu:1"
std::string driver_device_name(const DriverDevice& device);
/// Host memory of a process that the driver keeps in place.
struct DriverHost {
  uint32_t process = 0;
  uint64_t pinned_bytes = 0, pinned_peak_bytes = 0;
  uint64_t registered_bytes = 0, registered_peak_bytes = 0;
  /// From this time on. Of the first changes; `has_more_steps` where there were more.
  struct Step {
    uint64_t time_ns = 0, pinned_bytes = 0, registered_bytes = 0;
  };
  std::vector<Step> steps;
  bool has_more_steps = false;
  std::vector<DriverLibrary> libraries;  ///< who pinned pinned_peak_bytes, the largest first
};
inline constexpr size_t kMostHostSteps = 65'536;

struct DriverMemories {
  std::vector<DriverDevice> devices;
  std::vector<DriverHost> hosts;
};

class DriverGatherer {
 public:
  /// `truths`: in order of time; null or as long-lived as this.
  explicit DriverGatherer(const std::vector<TruthOfProcess>* truths = nullptr) : truths_(truths) {}

  /// What was live before the first event, where the source knows.
  void seed(const LiveState& state, const Tables& tables);
  void take(const EventBatch& batch, const Tables& tables);
  /// Null where nothing of the driver was seen. Call once, last.
  std::shared_ptr<const DriverMemories> finish(const Tables& tables);

 private:
  struct Live {
    uint64_t bytes;
    uint32_t library;
  };
  struct One {  // a device
    DriverDevice out;
    DriverMoment now;
    std::vector<uint64_t> by_library;  // physical, as asked for
    std::array<absl::flat_hash_map<uint64_t, Live>, kDriverUses> live;
    absl::flat_hash_map<uint64_t, uint32_t> edge_pages;  // that blocks begin or end in
    SegmentUse segments;
    uint64_t whole_pages = 0;
    uint64_t peak_bytes = 0;
    bool peak_is_open = false;  // nothing physical came or went since
    bool has_framework = false, awaits_framework = false;
    bool is_surely_sampled = false;  // its samples are told by its place
  };
  struct Memory {         // of Tables::devices
    int32_t device = -1;  // in devices_; -1: not the driver's
    int32_t framework = -1;
    int32_t host = -1;
    DriverUse use = DriverUse::kMemory;
  };

  Memory memory_of(uint16_t device, const Tables& tables);
  int32_t device_of(uint32_t process, const Device& device);
  int32_t host_of(uint32_t process);
  uint32_t library_of(uint32_t stack, const Tables& tables);
  void came(const Memory& memory, uint64_t address, Live live);
  void went(const Memory& memory, uint64_t address);
  void add_step(DriverHost* host) const;
  void host_came(const Memory& memory, uint64_t address, Live live);
  void host_went(const Memory& memory, uint64_t address);
  void pages(One& one, uint64_t address, uint64_t bytes, bool is_coming);
  void end_context(One& one);
  void changed(One& one, DriverUse use);
  void framework_event(const EventBatch& batch, size_t event, bool is_delayed, One* one);
  static std::optional<uint64_t> unservable_now(const One& one);
  DriverMoment moment(const One& one) const;
  void sample(const TruthOfProcess& told, One* one);
  /// Looks at the samples that were taken before `time_ns`.
  void pass_samples(uint64_t time_ns, const Tables& tables);

  std::vector<Memory> memories_;
  std::vector<One> devices_;
  std::vector<DriverHost> hosts_;
  struct Pinned {
    absl::flat_hash_map<uint64_t, Live> live[2];  // [1]: pinned, [0]: registered
    std::vector<uint64_t> by_library, by_library_at_peak;
  };
  std::vector<Pinned> pinned_;  // as hosts_
  std::vector<std::string> libraries_;
  absl::flat_hash_map<uint32_t, uint32_t> library_of_stack_;
  const std::vector<TruthOfProcess>* truths_;
  absl::flat_hash_map<uint32_t, std::vector<size_t>> devices_of_pid_;  // in devices_
  size_t devices_with_pid_ = 0;  // so many of devices_ are in there
  size_t next_truth_ = 0;
  bool has_driver_ = false;
  uint64_t time_ns_ = 0, event_ = 0;
};

}  // namespace gpumemprof
