// Which lines of code held the memory, of the main device and of others.
#include <fmt/format.h>

#include <algorithm>

#include "base/duration.h"
#include "base/size.h"
#include "report/describe/facts.h"
#include "report/describe/sections.h"
#include "report/words.h"

namespace gpumemprof {
namespace {

constexpr size_t kInnermostRows = 4;
constexpr size_t kOtherDeviceLines = 20;
constexpr size_t kMostHostSections = 3;  // the largest
constexpr uint64_t kLeastUnaskedShare = 100;  // of the peak: less says nothing

const char* moment_title(const DeviceAnalysis& device) {
  return is_moment(device) ? "What was live, by " : "What was live at the peak, by ";
}

/// The library calls below a line of the user's code.
void add_innermost(const Subject& subject, const HolderLine& line, Row* row) {
  if (line.stacks.size() < 2) return;
  const std::vector<HolderLine> inner_lines = group_by_innermost(line.stacks, subject.tables);
  if (inner_lines.size() == 1 && inner_lines[0].node == line.node) return;
  Table table{.columns = {{.is_number = true, .width = 9}, {}}, .noun = "place"};
  add_rows(inner_lines, kInnermostRows, &table,
           [&](const HolderLine& inner) {
             return Row{{{format_bytes(inner.bytes)}, {"in " + subject.line_text(inner.node)}}};
           });
  row->details.emplace_back(std::move(table));
}

void add_stacks(const Subject& subject, const HolderLine& line, Row* row) {
  const size_t count = line.stacks.size();
  const size_t shown = std::min(subject.options.stacks_of_line, count);
  for (size_t i = 0; i < shown; ++i) {
    const Holder& holder = line.stacks[i];
    if (holder.stack == 0) continue;
    if (count > 1) {
      const std::string which =
          shown == 1 ? fmt::format("the largest of its {} stacks", format_count(count))
                     : fmt::format("{}, stack {} of {}", format_plural(holder.count, "block"),
                                   i + 1, format_count(count));
      row->details.emplace_back(
          Sentence{fmt::format("{} in {}:", format_bytes(holder.bytes), which), Tone::kDim});
    }
    row->details.emplace_back(
        stack_of(subject.tables, holder.stack, subject.options.working_folder));
  }
}

Table lines_table(const Subject& subject, const DeviceAnalysis& device, size_t most) {
  Table table = share_table("line");
  table.columns.insert(table.columns.end() - 1, {.is_number = true});
  add_rows(group_by_line(device.holders_at_peak, subject.tables), most, &table,
           [&](const HolderLine& line) {
             Row row = share_row(line.bytes, device.figures.peak_bytes,
                                 {.text = subject.line_text(line.node),
                                  .note = subject.note_of(line.node, device),
                                  .is_code = true,
                                  .is_strong = true});
             row.cells.insert(row.cells.end() - 1, {format_plural(line.count, "block")});
             add_innermost(subject, line, &row);
             add_stacks(subject, line, &row);
             if (line.node != 0) row.evidence = evidence_at_peak(device, {line.node});
             return row;
           });
  return table;
}

}  // namespace

Stack stack_of(const Tables& tables, uint32_t stack, std::string_view folder) {
  const uint32_t headline = headline_node(tables, stack);
  Stack out;
  const bool has_python = python_node(tables, stack) != 0;
  for (uint32_t node = stack; node != 0; node = tables.stacks.node(node).parent) {
    const Frame& frame = tables.stacks.frame_of(node);
    const bool is_user = is_user_file(tables.strings.get(frame.file));
    const bool is_native = has_python && is_native_source(tables.strings.get(frame.file));
    out.frames.push_back({.text = frame_text(tables, node),
                          .short_text = headline_text(tables, node, folder),
                          .is_user_code = is_user,
                          .is_kept = is_user || (node == stack && !is_native) || node == headline,
                          .is_native = is_native});
  }
  return out;
}

Table share_table(std::string noun) {
  return {.columns = {{.is_number = true, .width = 9}, {.is_number = true, .width = 6}, {}},
          .noun = std::move(noun)};
}

Row share_row(uint64_t bytes, uint64_t total, TableCell cell) {
  const double share = total == 0 ? 0 : static_cast<double>(bytes) / static_cast<double>(total);
  return {.cells = {{format_bytes(bytes)}, {format_percent(bytes, total)}, std::move(cell)},
          .share = share};
}

Section lines_section(const Subject& subject, const DeviceAnalysis& device) {
  Section out{std::string(moment_title(device)) + "line of your code"};
  out.add(lines_table(subject, device, subject.options.lines));
  return out;
}

Table layers_table(const Subject& subject, const DeviceAnalysis& device, size_t most) {
  Table table = share_table("layer");
  if (!is_tensorflow(device_at(subject.tables, device.device))) return table;
  const std::vector<WorkRow> rows =
      work_rows(device.holders_at_peak, subject.tables, WorkRows::kByPart);
  // Eager operations have the line that called them, which says more than their layer.
  uint64_t of_layers = 0;
  for (const WorkRow& row : rows) of_layers += row.has_layer ? row.graph_bytes : 0;
  if (of_layers <= device.figures.peak_bytes / 2) return table;
  add_rows(rows, most, &table, [&](const WorkRow& row) {
    return share_row(row.bytes, device.figures.peak_bytes,
                     {.text = row.text(), .note = format_plural(row.count, "block")});
  });
  table.left_out = 0;
  return table;
}

Section layers_section(const Subject& subject, const DeviceAnalysis& device) {
  Section out{std::string(moment_title(device)) + "phase and layer of TensorFlow"};
  // For frameworks that name the operation of an allocation.
  if (!is_tensorflow(device_at(subject.tables, device.device))) return out;
  Table table{
      .columns = {{.is_number = true, .width = 9}, {.is_number = true, .width = 6}, {}, {}, {}},
      .noun = "layer"};
  add_rows(
      work_rows(device.holders_at_peak, subject.tables, WorkRows::kByPartAndMode),
      subject.options.rows, &table, [&](const WorkRow& row) {
        return Row{{{format_bytes(row.bytes)},
                    {format_percent(row.bytes, device.figures.peak_bytes)},
                    {row.part},
                    {row.mode},
                    {.text = row.where.empty() ? kNotInALayer : row.where,
                     .note = format_plural(row.count, "block")}}};
      });
  out.add(std::move(table));
  const uint64_t unasked = device.unasked_at_peak_bytes, peak = device.figures.peak_bytes;
  if (unasked >= peak / kLeastUnaskedShare && unasked != 0) {
    out.add(Sentence{
        fmt::format("TensorFlow's pools hand out whole chunks: of {}, {} were asked for and {} are "
                    "rounding.",
                    format_bytes(peak), format_bytes(peak - unasked), format_bytes(unasked))});
  }
  return out;
}

Section temporaries_section(const Subject& subject, const DeviceAnalysis& device) {
  Section out{fmt::format("Temporaries: freed again within {}",
                          format_duration(subject.analysis.temporary_ns))};
  if (device.temporary_count == 0) return out;
  std::vector<Holder> as_holders;
  for (const Temporary& t : device.temporaries) as_holders.push_back({t.stack, t.bytes, t.count});
  std::vector<HolderLine> lines = group_by_line(as_holders, subject.tables);
  std::ranges::stable_sort(lines, std::ranges::greater(), &HolderLine::count);
  const uint64_t allocs = action_count(device.figures, Action::kAlloc);
  out.add(Sentence{fmt::format("{} of {} ({}), {} in all", format_count(device.temporary_count),
                               format_plural(allocs, "allocation"),
                               format_percent(device.temporary_count, allocs),
                               format_bytes(device.temporary_bytes))});
  Table table{.columns = {{.is_number = true, .width = 9}, {.is_number = true, .width = 9}, {}},
              .noun = "line"};
  add_rows(lines, subject.options.rows / 2, &table, [&](const HolderLine& line) {
    return Row{{{format_plural(line.count, "time")},
                {format_bytes(line.bytes)},
                {.text = subject.line_text(line.node), .is_code = true}}};
  });
  out.add(std::move(table));
  return out;
}

std::vector<Section> other_device_sections(const Subject& subject, const DeviceAnalysis* main) {
  std::vector<const DeviceAnalysis*> others;
  for (const DeviceAnalysis& device : subject.analysis.devices) {
    if (&device != main && device.figures.peak_bytes != 0) others.push_back(&device);
  }
  std::ranges::stable_sort(others, std::ranges::greater(),
                           [](const DeviceAnalysis* device) { return device->figures.peak_bytes; });
  std::vector<Section> out;
  size_t folded = 0, of_host = 0;
  for (const DeviceAnalysis* device : others) {
    // What `run --host` was asked for, everywhere; other devices where there is room.
    const bool is_asked_for = is_host_blocks(device_at(subject.tables, device->device)) &&
                              of_host < kMostHostSections;
    if (!is_asked_for && folded == subject.options.other_devices) continue;
    (is_asked_for ? of_host : folded) += 1;
    Section section{.title = peak_sentence(subject.analysis, subject.tables, *device),
                    .is_folded = !is_asked_for};
    section.add(lines_table(subject, *device,
                            is_asked_for ? subject.options.lines : kOtherDeviceLines));
    section.evidence = evidence_at_peak(*device);
    if (device->pool) {
      for (Part& part : pool_section(*device->pool).parts) section.parts.push_back(std::move(part));
    }
    out.push_back(std::move(section));
  }
  return out;
}

}  // namespace gpumemprof
