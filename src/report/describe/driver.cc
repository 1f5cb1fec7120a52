#include "report/describe/describe.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/compare/diff.h"
#include "base/size.h"
#include "report/describe/facts.h"
#include "report/describe/sections.h"
#include "report/words.h"

namespace gpumemprof {
namespace {

std::string signed_size(int64_t bytes) {
  return (bytes < 0 ? "-" : "+") + format_bytes(magnitude(bytes));
}

Row unknown_term(size_t depth, std::string name, const DeviceIdentity& sum, std::string_view what) {
  const auto why = std::ranges::find(sum.unknown, what,
                                     [](const auto& one) { return std::string_view(one.first); });
  return term_row(depth, std::move(name), "unknown",
                  why == sum.unknown.end() ? "" : "because " + why->second);
}

Row known_or_why(size_t depth, const char* name, const std::optional<uint64_t>& bytes,
                 const DeviceIdentity& sum, std::string_view what) {
  return bytes ? term_row(depth, name, format_bytes(*bytes)) : unknown_term(depth, name, sum, what);
}

/// The moment that answers most: where what the process uses is known, else what the device does,
/// else the peak.
const DriverMoment& shown_moment(const DriverDevice& device) {
  if (device.sampled) return *device.sampled;
  return !device.peak.device_used_bytes && device.asked ? *device.asked : device.peak;
}

ChartLine line_of(const char* name, const Timeline& timeline, const Analysis& analysis) {
  std::vector<double> times_s, bytes;
  const auto start = static_cast<double>(timeline.start_ns()) - static_cast<double>(analysis.start_time_ns);
  for (size_t i = 0; i < timeline.buckets().size(); ++i) {
    times_s.push_back((start + static_cast<double>(i * timeline.bucket_ns())) * 1e-9);
    bytes.push_back(static_cast<double>(timeline.buckets()[i].max_bytes));
  }
  return chart_line(name, times_s, bytes);
}

/// What the driver had handed out over time, and the framework's part of it.
Chart levels_chart(const Subject& subject, const DriverDevice& device) {
  Chart out{.title = "driver, " + driver_device_name(device)};
  for (const auto& [name, timeline] :
       {std::pair("handed out by the driver", &device.physical),
        std::pair("reserved by the framework's allocator", &device.reserved)}) {
    if (!timeline->buckets().empty())
      out.lines.push_back(line_of(name, *timeline, subject.analysis));
  }
  return out;
}

Section device_section(const Subject& subject, const DriverDevice& device) {
  const DriverMoment& moment = shown_moment(device);
  Section out{fmt::format("{}: {} {}, {}, {}", device.type == 12 ? "Level Zero" : "The CUDA driver",
                          driver_device_name(device),
                          &moment == &device.peak ? "at the driver's peak"
                          : moment.truth          ? "at the highest sample"
                                                  : "at the last sample",
                          moment_text(subject.analysis, moment.time_ns),
                          process_label(process_at(subject.tables, device.process), 32))};
  Table table = identity_table(moment, identity_of(moment));
  const uint64_t space = moment.of(DriverUse::kAddressSpace);
  const uint64_t mapped = moment.of(DriverUse::kMapped);
  if (space > mapped)
    table.rows.push_back(
        term_row(0, "reserved address space without memory", format_bytes(space - mapped)));
  if (const uint64_t bytes = moment.of(DriverUse::kManaged))
    table.rows.push_back(term_row(0, "managed memory", format_bytes(bytes)));
  if (const uint64_t bytes = moment.of(DriverUse::kImported))
    table.rows.push_back(term_row(0, "imported from other processes", format_bytes(bytes)));
  if (device.refused)
    table.rows.push_back(
        term_row(0, "requests refused (out of memory)", format_count(device.refused)));
  if (!device.physical.buckets().empty()) out.add(levels_chart(subject, device));
  out.add(std::move(table));
  return out;
}

Section host_section(const Subject& subject, const DriverHost& host) {
  Section out{"Host memory pinned by the driver, " +
              process_label(process_at(subject.tables, host.process), 32)};
  Table table = terms_table();
  const auto at_end = [](uint64_t bytes) { return format_bytes(bytes) + " at the end"; };
  table.rows = {term_row(0, "pinned by allocation, at most", format_bytes(host.pinned_peak_bytes),
                         at_end(host.pinned_bytes)),
                term_row(0, "registered, at most", format_bytes(host.registered_peak_bytes),
                         at_end(host.registered_bytes))};
  out.add(std::move(table));
  return out;
}

}  // namespace

Table terms_table() { return {.columns = {{.width = 40}, {.is_number = true, .width = 10}, {}}}; }

Row term_row(size_t depth, std::string name, std::string value, std::string remark) {
  Row row{{{.text = std::move(name), .depth = depth}, {std::move(value)}}};
  if (!remark.empty()) row.cells.push_back({std::move(remark)});
  return row;
}

Table identity_table(const DriverMoment& moment, const DeviceIdentity& sum, size_t most_libraries) {
  Table table = terms_table();
  const auto add = [&](Row row) { table.rows.push_back(std::move(row)); };
  add(known_or_why(0, "device used", sum.device_used_bytes, sum, "device_used"));
  if (sum.reserved_bytes) add(term_row(1, "driver's own", format_bytes(*sum.reserved_bytes)));
  add(known_or_why(1, "other processes", sum.others_bytes, sum, "other_processes"));
  if (sum.of_no_process_bytes.value_or(0) != 0)
    add(term_row(1, "no known process", signed_size(*sum.of_no_process_bytes)));
  add(known_or_why(1, "this process", sum.process_bytes, sum, "process_used"));
  add(sum.contexts_are_known
          ? term_row(2, "contexts", format_bytes(sum.contexts_bytes), "an estimate")
          : unknown_term(2, "contexts", sum, "contexts"));
  add(term_row(2, "modules", format_bytes(sum.modules_bytes), "an estimate"));
  size_t shown = 0;
  uint64_t rest = 0;
  for (const DriverLibrary& library : moment.libraries) {
    if (library.is_framework) continue;
    if (++shown > most_libraries) {
      rest += library.bytes;
    } else {
      add(term_row(2, library.name, format_bytes(library.bytes)));
    }
  }
  if (rest) add(term_row(2, "other libraries", format_bytes(rest)));
  add(term_row(2, "rounding to pages of 2 MiB", format_bytes(sum.rounding_bytes)));
  add(term_row(2, "framework", format_bytes(sum.framework_bytes)));
  if (sum.framework_allocated_bytes && sum.framework_cached_bytes) {
    add(term_row(3, "allocated", format_bytes(*sum.framework_allocated_bytes)));
    add(term_row(3, "cached", format_bytes(*sum.framework_cached_bytes)));
    if (sum.framework_unservable_bytes)
      add(term_row(4, "in pinned segments", format_bytes(*sum.framework_unservable_bytes)));
    if (sum.framework_beside_bytes.value_or(0) != 0)
      add(term_row(3, "outside its allocator", signed_size(*sum.framework_beside_bytes)));
  }
  if (sum.unexplained_bytes) {
    add(term_row(2, "unexplained", signed_size(*sum.unexplained_bytes)));
  } else if (sum.others_and_unexplained_bytes) {
    add(term_row(1, "other processes or unexplained",
                 signed_size(*sum.others_and_unexplained_bytes)));
  } else if (sum.contexts_and_unexplained_bytes) {
    add(term_row(2, "contexts and unexplained", signed_size(*sum.contexts_and_unexplained_bytes)));
  } else {
    add(unknown_term(2, "unexplained", sum, "unexplained"));
  }
  return table;
}

std::vector<Section> driver_sections(const Subject& subject) {
  std::vector<Section> out;
  if (!subject.analysis.driver) return out;
  for (const DriverDevice& device : subject.analysis.driver->devices)
    out.push_back(device_section(subject, device));
  for (const DriverHost& host : subject.analysis.driver->hosts)
    out.push_back(host_section(subject, host));
  return out;
}

}  // namespace gpumemprof
