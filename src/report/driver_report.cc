#include "report/driver_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "analysis/driver_moment_json.h"
#include "base/size.h"
#include "report/facts.h"
#include "report/words.h"

namespace gpumemprof {
namespace {

using Json = nlohmann::ordered_json;

std::string signed_bytes(int64_t bytes) {
  const auto size = bytes < 0 ? 0 - static_cast<uint64_t>(bytes) : static_cast<uint64_t>(bytes);
  return (bytes < 0 ? "-" : "+") + format_bytes(size);
}

std::string row(size_t depth, std::string_view name, std::string_view value,
                std::string_view more = "") {
  const std::string left = std::string(2 * depth, ' ') + std::string(name);
  return fmt::format("  {:<40}  {:>10}{}{}", left, value, more.empty() ? "" : "  ", more);
}

std::string why(const DeviceIdentity& identity, std::string_view term) {
  for (const auto& [name, reason] : identity.unknown)
    if (name == term) return "because " + reason;
  return "";
}

void known_or_why(std::vector<std::string>* out, size_t depth, std::string_view name,
                  const std::optional<uint64_t>& bytes, const DeviceIdentity& sum,
                  std::string_view term) {
  out->push_back(bytes ? row(depth, name, format_bytes(*bytes))
                       : row(depth, name, "unknown,", why(sum, term)));
}

/// The moment that answers most: where what the process uses is known, else what the device does,
/// else the peak.
const DriverMoment& shown_moment(const DriverDevice& device) {
  if (device.sampled) return *device.sampled;
  return !device.peak.device_used_bytes && device.asked ? *device.asked : device.peak;
}

}  // namespace

nlohmann::ordered_json driver_json(const Analysis& analysis, const Tables& tables) {
  if (!analysis.driver) return nullptr;
  Json devices = Json::array(), hosts = Json::array();
  for (const DriverDevice& device : analysis.driver->devices) {
    devices.push_back(
        {{"device", driver_device_name(device)},
         {"process", process_at(tables, device.process).pid},
         {"process_index", device.process},
         {"refused_count", device.refused},
         {"peak", driver_moment_json(device.peak)},
         {"end", driver_moment_json(device.end)},
         {"asked", device.asked ? driver_moment_json(*device.asked) : Json(nullptr)},
         {"sampled", device.sampled ? driver_moment_json(*device.sampled) : Json(nullptr)}});
  }
  for (const DriverHost& host : analysis.driver->hosts) {
    hosts.push_back({{"process", process_at(tables, host.process).pid},
                     {"process_index", host.process},
                     {"pinned_bytes", host.pinned_bytes},
                     {"pinned_peak_bytes", host.pinned_peak_bytes},
                     {"registered_bytes", host.registered_bytes},
                     {"registered_peak_bytes", host.registered_peak_bytes}});
  }
  return {{"devices", devices}, {"hosts", hosts}};
}

std::vector<std::string> identity_lines(const DriverMoment& moment, const DeviceIdentity& sum,
                                        size_t most_libraries) {
  std::vector<std::string> out;
  known_or_why(&out, 0, "device used", sum.device_used_bytes, sum, "device_used");
  if (sum.reserved_bytes) out.push_back(row(1, "driver's own", format_bytes(*sum.reserved_bytes)));
  known_or_why(&out, 1, "other processes", sum.others_bytes, sum, "other_processes");
  if (sum.of_no_process_bytes.value_or(0) != 0)
    out.push_back(row(1, "of no process that is named", signed_bytes(*sum.of_no_process_bytes)));
  known_or_why(&out, 1, "this process", sum.process_bytes, sum, "process_used");
  if (sum.contexts_are_known) {
    out.push_back(row(2, "contexts", format_bytes(sum.contexts_bytes), "an estimate"));
  } else {
    out.push_back(row(2, "contexts", "unknown,", why(sum, "contexts")));
  }
  out.push_back(row(2, "modules", format_bytes(sum.modules_bytes), "an estimate"));
  size_t shown = 0;
  uint64_t rest = 0;
  for (const DriverLibrary& library : moment.libraries) {
    if (library.is_framework) continue;
    if (++shown > most_libraries) {
      rest += library.bytes;
      continue;
    }
    out.push_back(row(2, printable(library.name), format_bytes(library.bytes)));
  }
  if (rest) out.push_back(row(2, "other libraries", format_bytes(rest)));
  out.push_back(row(2, "rounding to pages of 2 MiB", format_bytes(sum.rounding_bytes)));
  out.push_back(row(2, "framework", format_bytes(sum.framework_bytes)));
  if (sum.framework_allocated_bytes && sum.framework_cached_bytes) {
    out.push_back(row(3, "allocated", format_bytes(*sum.framework_allocated_bytes)));
    out.push_back(row(3, "cached", format_bytes(*sum.framework_cached_bytes)));
    if (sum.framework_unservable_bytes)
      out.push_back(row(4, "pinned, in pieces", format_bytes(*sum.framework_unservable_bytes)));
    if (sum.framework_beside_bytes && *sum.framework_beside_bytes != 0)
      out.push_back(row(3, "beside its allocator", signed_bytes(*sum.framework_beside_bytes)));
  }
  if (sum.unexplained_bytes) {
    out.push_back(row(2, "unexplained", signed_bytes(*sum.unexplained_bytes)));
  } else if (sum.others_and_unexplained_bytes) {
    out.push_back(
        row(1, "other processes and unexplained", signed_bytes(*sum.others_and_unexplained_bytes)));
  } else {
    out.push_back(row(2, "unexplained", "unknown,", why(sum, "unexplained")));
  }
  return out;
}

std::vector<std::string> driver_lines(const Analysis& analysis, const Tables& tables) {
  std::vector<std::string> out;
  if (!analysis.driver) return out;
  for (const DriverDevice& device : analysis.driver->devices) {
    const DriverMoment& moment = shown_moment(device);
    const bool is_peak = &moment == &device.peak;
    out.push_back(fmt::format("{}: {} {}, {}, {}",
                              device.type == 12 ? "Level Zero" : "The CUDA driver",
                              driver_device_name(device),
                              is_peak        ? "when the most was taken"
                              : moment.truth ? "when a sample of it was the highest"
                                             : "when it last was asked",
                              moment_text(analysis, moment.time_ns),
                              process_label(process_at(tables, device.process), 32)));
    for (std::string& text : identity_lines(moment, identity_of(moment)))
      out.push_back(std::move(text));
    const uint64_t space = moment.of(DriverUse::kAddressSpace);
    const uint64_t mapped = moment.of(DriverUse::kMapped);
    if (space > mapped)
      out.push_back(row(0, "address space that holds nothing", format_bytes(space - mapped)));
    if (const uint64_t bytes = moment.of(DriverUse::kManaged))
      out.push_back(row(0, "managed memory, wherever it lies", format_bytes(bytes)));
    if (const uint64_t bytes = moment.of(DriverUse::kImported))
      out.push_back(row(0, "imported, which others pay for", format_bytes(bytes)));
    if (device.refused)
      out.push_back(row(0, "refused for want of memory", format_count(device.refused)));
  }
  for (const DriverHost& host : analysis.driver->hosts) {
    out.push_back("Host memory that the driver keeps in place, " +
                  process_label(process_at(tables, host.process), 32));
    const auto at_end = [](uint64_t bytes) { return format_bytes(bytes) + " at the end"; };
    out.push_back(row(0, "pinned by allocation, at most", format_bytes(host.pinned_peak_bytes),
                      at_end(host.pinned_bytes)));
    out.push_back(row(0, "registered, at most", format_bytes(host.registered_peak_bytes),
                      at_end(host.registered_bytes)));
  }
  return out;
}

}  // namespace gpumemprof
