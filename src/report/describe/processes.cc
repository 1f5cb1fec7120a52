// Devices, processes and threads of the recording.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "analysis/categories/mapped_files.h"
#include "analysis/pass/end_in_doubt.h"
#include "base/size.h"
#include "report/describe/facts.h"
#include "report/describe/sections.h"
#include "report/words.h"

namespace gpumemprof {
namespace {

Row device_row(const Subject& subject, const DeviceAnalysis& device) {
  const DeviceFigures& figures = device.figures;
  const uint64_t allocs = action_count(figures, Action::kAlloc);
  const Device& memory = device_at(subject.tables, device.device);
  const bool is_of_snapshot = device.snapshot && !device.snapshot->is_recorded;
  std::string name = memory_name(device, subject.tables);
  if (!is_of_snapshot) name += ", " + process_label(process_at(subject.tables, memory.process), 32);
  const auto rate = rate_per_second(allocs, subject.analysis, device);
  return {.cells = {{format_bytes(figures.peak_bytes)},
                    {format_bytes(figures.live_bytes)},
                    {format_bytes(figures.total_bytes)},
                    {format_count(allocs)},
                    {rate ? format_count(static_cast<uint64_t>(std::llround(*rate))) : "unknown"},
                    {peak_reserved_text(device).value_or("unknown")},
                    {std::move(name)}},
          .evidence = evidence_at_peak(device)};
}

/// What processes made in shared memory to send it, less what others received: a tensor that is sent
/// to several makes it less than what waits.
uint64_t unreceived_bytes(const Subject& subject) {
  uint64_t sent = 0, received = 0;
  for (const DeviceAnalysis& device : subject.analysis.devices) {
    if (!is_shared_memory(subject.tables, device.device)) continue;
    for (const Holder& made : device.totals) {
      if (is_received(subject.tables, made.stack))
        received += made.bytes;
      else if (is_sent(subject.tables, made.stack))
        sent += made.bytes;
    }
  }
  return sent - std::min(sent, received);
}

}  // namespace

Section devices_section(const Subject& subject) {
  const Analysis& analysis = subject.analysis;
  Section out{"Devices"};
  std::vector<const DeviceAnalysis*> devices;
  for (const DeviceAnalysis& sum : analysis.sums) devices.push_back(&sum);
  for (const DeviceAnalysis& device : analysis.devices) devices.push_back(&device);
  if (analysis.devices.empty()) return out;
  std::ranges::stable_sort(devices, std::ranges::greater(),
                           [](const DeviceAnalysis* device) { return device->figures.peak_bytes; });
  Table table{.columns = {{"peak", true, 9},
                          {"at end", true, 9},
                          {"allocated in all", true, 10},
                          {"allocations", true, 12},
                          {"per second", true, 12},
                          {"reserved", true, 9},
                          {"device"}},
              .noun = "device"};
  add_rows(devices, subject.options.table_rows, &table,
           [&](const DeviceAnalysis* device) { return device_row(subject, *device); });
  out.add(std::move(table));
  for (const DeviceAnalysis* device : devices) {
    const std::string why = why_no_times(analysis, *device);
    if (why.empty()) continue;
    out.add(Sentence{"Allocations per second are unknown: " + why + "."});
    break;
  }
  if (const uint64_t bytes = unreceived_bytes(subject); bytes != 0)
    out.add(Sentence{fmt::format(
        "Of shared memory only what a process has mapped counts. What waits in queues is in /dev/shm, "
        "in no figure: at least {} were sent and not received by the end.",
        format_bytes(bytes))});
  return out;
}

Section processes_section(const Subject& subject) {
  const std::vector<Process>& processes = subject.tables.processes;
  Section out{"Processes"};
  if (processes.size() < 2) return out;
  Table table{.columns = {{"events", true, 12},
                          {"allocations", true, 12},
                          {"allocated in all", true, 10},
                          {"process"}},
              .noun = "process"};
  size_t index = 0;
  add_rows(processes, subject.options.table_rows, &table, [&](const Process& process) {
    const size_t i = index++;
    const ProcessAnalysis sums =
        i < subject.analysis.processes.size() ? subject.analysis.processes[i] : ProcessAnalysis{};
    std::string name = process_label(process);
    if (is_end_in_doubt(subject.tables, process, subject.analysis.ends))
      name += ", end not recorded (killed, or still running)";
    return Row{
        {{format_count(sums.events)},
         {format_count(sums.alloc_count)},
         {format_bytes(sums.alloc_bytes)},
         {.text = std::move(name),
          .note = process.python_version.empty() ? "" : "Python " + process.python_version}}};
  });
  out.add(std::move(table));
  return out;
}

Section threads_section(const Subject& subject) {
  const std::vector<ThreadAnalysis>& threads = subject.analysis.threads;
  const Tables& tables = subject.tables;
  Section out{"Threads that allocated"};
  std::vector<size_t> order;
  std::set<uint32_t> processes;
  for (size_t i = 0; i < threads.size(); ++i) {
    if (threads[i].alloc_count == 0) continue;
    order.push_back(i);
    processes.insert(tables.threads[i].process);
  }
  // One a process: the table of processes says it all.
  if (order.size() <= processes.size()) return out;
  std::ranges::stable_sort(order, std::ranges::greater(),
                           [&](size_t i) { return threads[i].alloc_bytes; });
  Table table{.columns = {{"allocations", true, 12}, {"allocated in all", true, 10}, {"thread"}},
              .noun = "thread"};
  add_rows(order, subject.options.rows, &table, [&](size_t i) {
    const Thread& thread = tables.threads[i];
    const uint32_t pid = process_at(tables, thread.process).pid;
    std::string name = thread.tid == 0 ? "" : fmt::format("{} ", thread.tid);
    name += thread.name;
    if (pid != 0) name += fmt::format(" of process {}", pid);
    return Row{{{format_count(threads[i].alloc_count)},
                {format_bytes(threads[i].alloc_bytes)},
                {"thread " + name}}};
  });
  out.add(std::move(table));
  return out;
}

}  // namespace gpumemprof
