#include "cli/info.h"

#include <cstdio>

#include "base/size.h"
#include "report/words.h"

namespace gpumemprof {
namespace {

std::string text_of(const Known<std::string>& known) {
  return known ? printable(*known.value) : "unknown (" + known.absent_because + ')';
}

std::string bytes_of(const Quantity& quantity) {
  return quantity ? format_bytes(*quantity.bytes) : "unknown (" + quantity.absent_because + ')';
}

std::string number_of(const Known<uint64_t>& known, const char* unit) {
  return known ? std::to_string(*known.value) + unit : "unknown (" + known.absent_because + ')';
}

std::string share_of(const DeviceMemory& memory) {
  if (!memory.used || !memory.total || *memory.total.bytes == 0) return "";
  char text[32];
  std::snprintf(
      text, sizeof text, " (%.1f %%)",
      100 * static_cast<double>(*memory.used.bytes) / static_cast<double>(*memory.total.bytes));
  return text;
}

std::string memory_text(const DeviceMemory& memory) {
  // A reason common to all is printed once.
  if (!memory.total && !memory.used) return "memory unknown (" + memory.total.absent_because + ')';
  std::string out = bytes_of(memory.total) + ", used " + bytes_of(memory.used) + share_of(memory);
  if (memory.free) out += ", free " + format_bytes(*memory.free.bytes);
  if (!memory.source.empty()) out += " (shares the host's memory: " + memory.source + ')';
  if (memory.reserved) out += "; reserved by the driver " + format_bytes(*memory.reserved.bytes);
  return out;
}

std::string process_text(const AcceleratorProcess& process) {
  std::string out = "    pid " + std::to_string(process.pid) + " (";
  out += process.here ? printable(process.command.empty() ? "its command line cannot be read"
                                                          : process.command.substr(0, 60))
                      : process.not_here_because;
  out += "): " + bytes_of(process.used);
  if (!process.kind.empty()) out += ", " + process.kind;
  if (process.utilization_percent)
    out += ", " + std::to_string(*process.utilization_percent.value) + " % of the GPU";
  if (process.gpu_instance) out += ", in GPU instance " + std::to_string(*process.gpu_instance);
  return out + '\n';
}

}  // namespace

std::string accelerator_text(const Accelerator& device, bool detailed) {
  std::string out = "  " + std::to_string(device.number) + ": " + text_of(device.name) + ", " +
                    memory_text(device.memory) + '\n';
  if (detailed) {
    out += "    " + text_of(device.uuid) + ", at " + text_of(device.pci_bus_id) + ", driver " +
           text_of(device.driver_version) + " (" + device.source + ")\n";
    out += "    busy " + number_of(device.utilization_percent, " %") + ", memory bus " +
           number_of(device.memory_utilization_percent, " %") + ", temperature " +
           number_of(device.temperature_celsius, " °C") + ", power ";
    char power[32];
    std::snprintf(power, sizeof power, "%.1f W",
                  static_cast<double>(device.power_milliwatts.value.value_or(0)) / 1000);
    out += (device.power_milliwatts ? power
                                    : "unknown (" + device.power_milliwatts.absent_because + ')') +
           '\n';
    if (device.host_total && device.host_used)
      out += "    host memory it can map: " + format_bytes(*device.host_total.bytes) + ", used " +
             format_bytes(*device.host_used.bytes) + '\n';
  }
  for (const AcceleratorSlice& slice : device.slices) {
    out += "    slice " + std::to_string(slice.index) + ": " + text_of(slice.name) + ", " +
           memory_text(slice.memory) + '\n';
    if (detailed) out += "      " + text_of(slice.uuid) + '\n';
  }
  if (!device.processes) {
    out += "    processes unknown (" + device.processes.absent_because + ")\n";
    return out;
  }
  for (const AcceleratorProcess& process : *device.processes.value) out += process_text(process);
  if (!device.processes_note.empty()) out += "    " + device.processes_note + '\n';
  return out;
}

}  // namespace gpumemprof
