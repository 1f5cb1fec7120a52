#include "run/machine_sample.h"

#include <algorithm>
#include <set>

#include "devices/cgroup_memory.h"
#include "devices/host_memory.h"
#include "devices/proc_text.h"
#include "devices/process_memory.h"

namespace gpumemprof {
namespace {

constexpr const char* kHost = "host";
constexpr const char* kKernel = "/proc";
constexpr const char* kOurs = "gpumemprof";
constexpr const char* kAll = "accelerators";

/// Puts values of one device of one source.
class SampledDevice {
 public:
  SampledDevice(std::string source, std::string device, TakenSample* out)
      : source_(std::move(source)), device_(std::move(device)), out_(out) {}

  void put(const char* field, SampledValue value, int64_t pid = 0) {
    out_->values.emplace_back(SampleKey{source_, device_, field, pid}, std::move(value));
  }
  void put(const char* field, const Quantity& quantity, int64_t pid = 0) {
    put(field,
        quantity ? SampledValue::of(*quantity.bytes)
                 : SampledValue::absent(quantity.absent_because),
        pid);
  }
  void put(const char* field, const Known<uint64_t>& known, int64_t pid = 0) {
    put(field, known ? SampledValue::of(*known.value) : SampledValue::absent(known.absent_because),
        pid);
  }
  void put(const char* field, const Known<std::string>& known) {
    put(field,
        known ? SampledValue::of_text(*known.value) : SampledValue::absent(known.absent_because));
  }
  /// Under the source that told it, which is the host's where the device shares its memory.
  void put(const DeviceMemory& memory) {
    SampledDevice of(memory.source.empty() ? source_ : memory.source, device_, out_);
    of.put("total_bytes", memory.total), of.put("used_bytes", memory.used);
    of.put("free_bytes", memory.free), of.put("reserved_bytes", memory.reserved);
  }

 private:
  std::string source_, device_;
  TakenSample* out_;
};

/// Of all rows of a number that is nobody's here.
Quantity used_outside(const std::vector<AcceleratorProcess>& all, int pid) {
  uint64_t sum = 0;
  for (const AcceleratorProcess& process : all) {
    if (process.pid != pid) continue;
    if (!process.used) return process.used;
    sum += *process.used.bytes;
  }
  return Quantity::of(sum);
}

/// In a slice of MIG each user of it is listed by itself; here a process has one figure a device.
void put_processes(const Accelerator& device, SampledDevice* out) {
  if (!device.processes) {
    return out->put("processes", SampledValue::absent(device.processes.absent_because));
  }
  const auto& all = *device.processes.value;
  std::set<int> pids;
  for (const AcceleratorProcess& process : all) pids.insert(process.pid);
  // All of them, so that a reader knows where fewer are told.
  out->put("processes", SampledValue::of(pids.size()));
  if (!device.processes_note.empty())
    out->put("processes_note", SampledValue::of_text(device.processes_note));
  size_t told = 0;
  for (const AcceleratorProcess& process : all) {
    if (told == kMostSampledProcesses) break;
    if (pids.erase(process.pid) == 0) continue;
    ++told;
    if (process.here) {
      out->put("used_bytes", used_by(device, process.pid), process.pid);
    } else {
      // A number of another PID namespace: it must not be taken for a process of ours.
      out->put("used_bytes_of_driver_pid", used_outside(all, process.pid), process.pid);
    }
  }
}

void put_cgroup(const CgroupMemory& cgroup, SampledDevice* out) {
  out->put("cgroup_used_bytes", cgroup.usage);
  out->put("cgroup_anonymous_bytes", cgroup.anonymous);
  out->put("cgroup_file_bytes", cgroup.file);
  out->put("cgroup_reclaimable_bytes", cgroup.reclaimable);
  out->put("cgroup_shared_bytes", cgroup.shared);
  out->put("cgroup_kernel_bytes", cgroup.kernel);
  out->put("cgroup_swapped_bytes", cgroup.swapped);
  out->put("cgroup_limit_hits", cgroup.limit_hits);
  out->put("cgroup_kills", cgroup.kills);
}

void put_pages(const ProcessPages& pages, int64_t pid, SampledDevice* out) {
  out->put("proportional_bytes", pages.proportional, pid);
  out->put("proportional_anonymous_bytes", pages.proportional_anonymous, pid);
  out->put("proportional_file_bytes", pages.proportional_file, pid);
  out->put("proportional_shared_bytes", pages.proportional_shared, pid);
  out->put("private_clean_bytes", pages.private_clean, pid);
  out->put("private_dirty_bytes", pages.private_dirty, pid);
  out->put("locked_bytes", pages.locked, pid);
  out->put("copied_file_bytes", pages.copied_file, pid);
  if (!pages.most_copied.empty())
    out->put("most_copied_file", SampledValue::of_text(pages.most_copied), pid);
}

/// The last three parts: "_inductor/compile_worker/__main__.py".
std::string_view end_of_path(std::string_view path) {
  size_t at = path.size();
  for (int parts = 0; parts < 3 && at != 0 && at != path.npos; ++parts)
    at = path.rfind('/', at - 1);
  return at == path.npos || at == 0 ? path : path.substr(at + 1);
}

}  // namespace

std::string program_of(std::string_view command) {
  std::string out;
  bool takes_next = false, is_of_script = false;
  for (size_t at = 0; at < command.size();) {
    const size_t end = std::min(command.find(' ', at), command.size());
    const std::string_view word = command.substr(at, end - at);
    at = end + 1;
    if (out.empty()) {
      out = word.substr(word.rfind('/') + 1);
      is_of_script =
          out.starts_with("python") || out.starts_with("pypy") || out == "bash" || out == "sh";
    } else if (!is_of_script && !word.ends_with(".py")) {
      continue;  // perhaps the value of an option before it
    } else if (word == "-c") {
      return out + " -c";
    } else if (word == "-m") {
      out += " -m", takes_next = true;
    } else if (takes_next || (!word.empty() && word[0] != '-')) {
      return out + ' ' + std::string(end_of_path(word));
    }
  }
  return out;
}

void add_host_values(const std::string& root, const std::vector<ProcessId>& processes, Walk walk,
                     TakenSample* out) {
  SampledDevice host(kKernel, kHost, out);
  const HostMemory memory = read_host_memory(root);
  host.put("total_bytes", memory.total), host.put("available_bytes", memory.available);
  host.put("limit_bytes", memory.limit), host.put("limit_used_bytes", memory.limit_used);
  put_cgroup(read_cgroup_memory(memory), &host);
  const std::string proc = root + "/proc";
  uint64_t alive = 0;
  for (const ProcessId& id : processes) {
    if (alive >= kMostSampledProcesses) break;
    const ProcessMemory of = read_process_memory(proc, id.pid, false);
    if (!of.exists) continue;
    ++alive;
    host.put("resident_bytes", of.resident, id.pid);
    host.put("peak_resident_bytes", of.peak_resident, id.pid);
    host.put("anonymous_bytes", of.anonymous, id.pid);
    host.put("file_bytes", of.file, id.pid);
    host.put("shared_bytes", of.shared, id.pid);
    host.put("swapped_bytes", of.swapped, id.pid);
    if (const auto space = read_address_space(proc, id.pid)) {
      host.put("mapped_bytes", SampledValue::of(space->mapped_bytes), id.pid);
      host.put("mapped_limit_bytes", SampledValue::of(space->limit_bytes), id.pid);
    }
    if (const auto stat = parse_stat(read_proc_text(proc + '/' + std::to_string(id.pid) + "/stat")))
      host.put("parent", SampledValue::of(static_cast<uint64_t>(stat->parent)), id.pid);
    host.put("program", SampledValue::of_text(program_of(command_line(proc, id.pid))), id.pid);
    if (walk == Walk::kPages) put_pages(read_process_pages(proc, id.pid), id.pid, &host);
  }
  host.put("processes", SampledValue::of(processes.size()));
}

void add_accelerator_values(const Accelerators& told, TakenSample* out) {
  SampledDevice all(kOurs, kAll, out);
  if (told.devices.empty()) {
    return all.put("devices", SampledValue::absent(told.notes.empty() ? "no accelerator was found"
                                                                      : told.notes.front()));
  }
  all.put("devices", SampledValue::of(told.devices.size()));
  if (!told.notes.empty()) all.put("note", SampledValue::of_text(told.notes.front()));
  for (const Accelerator& device : told.devices) {
    const std::string name = device.vendor + ':' + std::to_string(device.number);
    SampledDevice one(device.source, name, out);
    one.put("name", device.name), one.put("uuid", device.uuid);
    one.put("pci_bus_id", device.pci_bus_id), one.put("driver_version", device.driver_version);
    one.put(device.memory);
    one.put("host_total_bytes", device.host_total), one.put("host_used_bytes", device.host_used);
    one.put("utilization_percent", device.utilization_percent);
    one.put("memory_utilization_percent", device.memory_utilization_percent);
    one.put("temperature_celsius", device.temperature_celsius);
    one.put("power_milliwatts", device.power_milliwatts);
    put_processes(device, &one);
    for (const AcceleratorSlice& slice : device.slices) {
      SampledDevice part(device.source, name + " slice " + std::to_string(slice.index), out);
      part.put("name", slice.name), part.put("uuid", slice.uuid);
      part.put(slice.memory);
    }
  }
}

void add_no_accelerators(const std::string& why, TakenSample* out) {
  SampledDevice(kOurs, kAll, out).put("devices", SampledValue::absent(why));
}

}  // namespace gpumemprof
