#include "devices/nvidia_processes.h"

#include <algorithm>
#include <cstring>
#include <map>

namespace gpumemprof {
namespace {

using nvml::ProcessOf535;
using nvml::ProcessSample;
using nvml::ProcessV2;

constexpr unsigned kMostProcesses = 65536, kRoom = 16;
constexpr int kTries = 5;  // processes come between the question how many and the list
constexpr unsigned char kUntouched = 0xA5;

/// The entries of one list, whatever size they have. Some drivers (535.43 to 535.98) write 32 bytes
/// an entry where 24 are agreed on: what lies behind the agreed end tells. So there is room for the
/// larger ones, and nothing of another program's can be overwritten.
nvml::Return read_list(const NvmlLibrary::ProcessList& list, nvml::Device device,
                       std::vector<ProcessV2>* out) {
  unsigned count = 0;
  nvml::Return code = list.list(device, &count, nullptr);
  if (code == nvml::kSuccess && count == 0) return code;
  if (code != nvml::kSuccess && code != nvml::kInsufficientSize) return code;
  std::vector<unsigned char> bytes;
  unsigned capacity = 0;
  for (int i = 0; i < kTries; ++i) {
    capacity = std::min(count, kMostProcesses) + kRoom;
    bytes.assign(capacity * sizeof(ProcessOf535), kUntouched);
    count = capacity;
    code = list.list(device, &count, bytes.data());
    if (code != nvml::kInsufficientSize) break;
  }
  if (code != nvml::kSuccess) return code;
  count = std::min(count, capacity);
  size_t stride = list.entry_bytes;
  if (stride == sizeof(ProcessV2) && count > 0) {
    const auto* end = bytes.data() + count * sizeof(ProcessOf535);
    if (std::any_of(end - 8, end, [](unsigned char b) { return b != kUntouched; }))
      stride = sizeof(ProcessOf535);
  }
  for (unsigned i = 0; i < count; ++i) {
    ProcessV2 entry{.gpu_instance = nvml::kNoInstance, .compute_instance = nvml::kNoInstance};
    std::memcpy(&entry, bytes.data() + i * stride, std::min(stride, sizeof entry));
    out->push_back(entry);
  }
  return code;
}

/// The last percent of each process that there was a sample of.
std::map<unsigned, ProcessSample> read_utilization(const NvmlLibrary& lib, nvml::Device device,
                                                   std::string* why) {
  std::map<unsigned, ProcessSample> out;
  if (lib.process_utilization == nullptr) {
    *why = kNvmlTooOld;
    return out;
  }
  unsigned count = 0;
  nvml::Return code = lib.process_utilization(device, nullptr, &count, 0);
  *why = "no recent sample of this process";
  if (code == nvml::kInsufficientSize || code == nvml::kSuccess) {
    std::vector<ProcessSample> samples(std::min(count, kMostProcesses) + kRoom);
    count = static_cast<unsigned>(samples.size());
    code = lib.process_utilization(device, samples.data(), &count, 0);
    if (code == nvml::kSuccess) {
      samples.resize(std::min<size_t>(count, samples.size()));
      for (const ProcessSample& sample : samples) {
        auto [at, is_new] = out.try_emplace(sample.pid, sample);
        if (!is_new && sample.time_us >= at->second.time_us) at->second = sample;
      }
    }
  }
  if (code != nvml::kSuccess && code != nvml::kNotFound) *why = lib.reason(code);
  return out;
}

using Key = std::pair<unsigned, unsigned>;  // PID and slice

/// Adds the lists of one handle. False with the reason where none of them is told.
bool add_lists(const NvmlLibrary& lib, nvml::Device device, const AcceleratorSlice* slice,
               std::map<Key, AcceleratorProcess>* out, std::string* why) {
  bool any = false;
  *why = kNvmlTooOld;
  for (const NvmlLibrary::ProcessList& list : lib.process_lists) {
    std::vector<ProcessV2> entries;
    if (const nvml::Return code = read_list(list, device, &entries); code != nvml::kSuccess) {
      // That there is no list of graphics or MPS says less than that there is none of compute.
      if (!any && *why == kNvmlTooOld) *why = lib.reason(code);
      continue;
    }
    any = true;
    for (const ProcessV2& entry : entries) {
      auto [at, is_new] = out->try_emplace({entry.pid, slice ? slice->index : 0});
      AcceleratorProcess& process = at->second;
      process.pid = static_cast<int>(entry.pid);
      const bool told = entry.used != nvml::kNotAvailable;
      // A process in two lists has the same memory in both.
      if (is_new || (told && (!process.used || *process.used.bytes < entry.used))) {
        process.used =
            told ? Quantity::of(entry.used)
                 : Quantity::absent(
                       "the driver does not report memory per process here (NVML: not available)");
      }
      if (process.kind.find(list.kind) == std::string::npos)
        process.kind += (process.kind.empty() ? "" : "+") + std::string(list.kind);
      if (slice != nullptr) {
        process.gpu_instance = slice->gpu_instance;
        process.compute_instance = slice->compute_instance;
      } else if (entry.gpu_instance != nvml::kNoInstance) {
        process.gpu_instance = entry.gpu_instance;
        process.compute_instance = entry.compute_instance;
      }
    }
  }
  return any;
}

}  // namespace

Known<std::vector<AcceleratorProcess>> nvidia_processes(const NvmlLibrary& lib, nvml::Device device,
                                                        const std::vector<AcceleratorSlice>& slices,
                                                        const std::vector<nvml::Device>& handles,
                                                        const ProcessPlace& place) {
  using List = Known<std::vector<AcceleratorProcess>>;
  std::map<Key, AcceleratorProcess> found;
  std::string why = "no list was requested";
  bool any = false;
  for (size_t i = 0; i < handles.size(); ++i) {
    std::string reason;
    const bool told = add_lists(lib, handles[i], &slices[i], &found, &reason);
    if (!told && !any) why = reason;
    any = any || told;
  }
  if (handles.empty()) any = add_lists(lib, device, nullptr, &found, &why);
  if (!any) return List::absent(why);
  std::string no_sample;
  const auto samples = read_utilization(lib, device, &no_sample);
  List out = List::of({});
  for (auto& [key, process] : found) {
    const auto sample = samples.find(key.first);
    process.utilization_percent = sample != samples.end() ? Known<uint64_t>::of(sample->second.sm)
                                                          : Known<uint64_t>::absent(no_sample);
    place.look_up(&process, "nvidia");
    out.value->push_back(std::move(process));
  }
  return out;
}

}  // namespace gpumemprof
