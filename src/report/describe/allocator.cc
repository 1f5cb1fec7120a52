// Sections from an allocator's history: refused requests, segments, what pins them, TensorFlow's
// pool.
#include <fmt/format.h>

#include "analysis/replay/uneven_devices.h"
#include "base/size.h"
#include "report/describe/sections.h"
#include "report/describe/snapshot_words.h"
#include "report/words.h"

namespace gpumemprof {
namespace {

Table trials_table(const std::vector<OomTrial>& trials) {
  Table table{.columns = {{"reserved at most", true}, {"fits"}, {"settings"}}, .noun = "setting"};
  for (const OomTrial& trial : trials) {
    table.rows.push_back({{{format_bytes(trial.peak_reserved_bytes)},
                           {trial.fits ? "yes" : "no"},
                           {.text = settings_name(trial.settings), .is_code = !trial.settings.empty()}}});
  }
  return table;
}

/// What the sizes show comes first; why they differ is not in the file.
std::string uneven_text(const Subject& subject, const DeviceAnalysis& device,
                        const UnevenLine& line) {
  return fmt::format(
      "At {} a block of {} is {:.1f} times as large as one of {} ({} and {} in the mean, at each "
      "device's peak). Probably the batch is split unevenly.",
      subject.line_text(line.node), memory_name(device, subject.tables), line.times(),
      device_name(device_at(subject.tables, line.other_device)), format_bytes(line.mean_bytes),
      format_bytes(line.other_mean_bytes));
}

constexpr size_t kMostPoolHolders = 10;

void add_pool_holders(const char* title, const std::vector<PoolHolder>& holders, Section* out) {
  if (holders.empty()) return;
  out->add(Sentence{title, Tone::kStrong});
  Table table{.columns = {{.is_number = true, .width = 10}, {}}, .noun = "row"};
  add_rows(holders, kMostPoolHolders, &table, [](const PoolHolder& holder) {
    const std::string what = holder.size_bytes != 0     ? "of " + format_bytes(holder.size_bytes)
                             : holder.operation.empty() ? "by an unknown operation"
                                                        : "by " + holder.operation;
    return Row{
        {{format_bytes(holder.bytes)}, {format_plural(holder.chunks, "chunk") + " " + what}}};
  });
  out->add(std::move(table));
}

Table pool_sums(const PoolPicture& picture) {
  std::string regions = format_plural(picture.regions, "region");
  if (!picture.are_regions_listed) regions = "at least " + regions;
  std::string in_use = fmt::format("in {} in use", format_plural(picture.chunks_in_use, "chunk"));
  if (picture.unasked_bytes)
    in_use += ", " + range_text(*picture.unasked_bytes) + " of it rounding";
  std::string free = "free, in " + format_plural(picture.free_chunks, "chunk");
  if (picture.free_chunks > 1) free += ", the largest " + format_bytes(picture.largest_free_bytes);
  Table table{.columns = {{.is_number = true, .width = 10}, {}}};
  table.rows = {{{{format_bytes(picture.bytes)}, {"reserved from the device, in " + regions}}},
                {{{format_bytes(picture.bytes_in_use)}, {in_use}}},
                {{{format_bytes(picture.free_bytes)}, {free}}}};
  return table;
}

}  // namespace

std::vector<Section> refusal_sections(const Subject& subject, const DeviceAnalysis& device) {
  std::vector<Section> out;
  if (!device.snapshot) return out;
  size_t refusals = 0;
  for (const DeviceAnalysis& each : subject.analysis.devices)
    refusals += each.snapshot ? each.snapshot->ooms.size() : 0;
  for (const OomExplanation& oom : device.snapshot->ooms) {
    Section section{"Out of memory on " + memory_name(device, subject.tables)};
    section.evidence = EvidencePlace{.view = EvidencePlace::View::kAddressSpace,
                                     .when = EvidencePlace::When::kRefusal,
                                     .device = device.device,
                                     .number = oom.number};
    List list;
    for (std::string& text :
         oom_details(oom, *device.snapshot, subject.tables, subject.options.working_folder,
                     refusals == 1))
      list.items.push_back({"", std::move(text)});
    if (const auto uneven = uneven_line(subject.analysis, subject.tables, device))
      list.items.push_back({"", uneven_text(subject, device, *uneven)});
    section.add(std::move(list));
    // If no setting would have fitted, a sentence has said so.
    if (best_trial(oom)) section.add(trials_table(oom.trials));
    out.push_back(std::move(section));
  }
  return out;
}

Section fragmentation_section(const Subject& subject, const DeviceAnalysis& device) {
  Section out{"What causes fragmentation at the peak"};
  const SnapshotDevice* snapshot = device.snapshot.get();
  if (!snapshot || !snapshot->is_consistent || !snapshot->at_peak) return out;
  const PinnedPieces pinned = most_pinned(*snapshot);
  if (pinned.moment->pinning.empty()) return out;
  if (!pinned.is_at_peak) out.title = "What causes fragmentation where most was reserved";
  out.add(Sentence{
      "Free bytes that stay reserved because blocks of the line are live in their segments."});
  Table table{.columns = {{"this line alone", true},
                          {"with other lines", true},
                          {"live bytes", true},
                          {"segments", true},
                          {"line"}},
              .noun = "line"};
  const std::vector<PinningStack> lines =
      pinning_lines(pinned.moment->segments, subject.tables);
  add_rows(lines, subject.options.rows, &table, [&](const PinningStack& by) {
    return Row{
        {{format_bytes(by.alone_bytes)},
         {format_bytes(by.pinned_bytes - by.alone_bytes)},
         {format_bytes(by.live_bytes)},
         {format_count(by.segments)},
         {.text = subject.line_text(by.stack), .is_code = true}}};
  });
  out.add(std::move(table));
  out.evidence = evidence_at_peak(device);
  if (out.evidence) out.evidence->view = EvidencePlace::View::kAddressSpace;
  if (out.evidence && !pinned.is_at_peak) {
    // A recording's history has numbers of its own.
    if (snapshot->is_recorded || !pinned.moment->event) {
      out.evidence.reset();
    } else {
      out.evidence->when = EvidencePlace::When::kEvent;
      out.evidence->number = *pinned.moment->event;
    }
  }
  return out;
}

Section pool_section(const BfcPool& pool) {
  const PoolPicture picture = picture_of(pool);
  Section out{"The pool " + pool.allocator};
  out.add(pool_sums(picture));
  if (!pool.is_complete || pool.more_chunks != 0)
    out.add(Sentence{"The list of chunks is incomplete; the sums cover only what is listed."});
  out.add(Sentence{"Chunks by bin (a request is served from its own bin or a larger one)",
                   Tone::kStrong});
  Table bins{.columns = {{"from", true, 10},
                         {"chunks", true, 8},
                         {"in use", true, 8},
                         {"bytes", true, 10},
                         {"free", true, 10},
                         {"largest free", true}}};
  for (const PoolBin& bin : picture.bins) {
    bins.rows.push_back(
        {{{format_bytes(bin.least_bytes)},
          {format_count(bin.chunks)},
          {format_count(bin.chunks_in_use)},
          {format_bytes(bin.bytes)},
          {format_bytes(bin.bytes - bin.bytes_in_use)},
          {bin.largest_free_bytes == 0 ? "-" : format_bytes(bin.largest_free_bytes)}}});
  }
  out.add(std::move(bins));
  add_pool_holders("In use, by size of chunk", picture.by_size, &out);
  add_pool_holders("In use, by operation", picture.by_operation, &out);
  return out;
}

}  // namespace gpumemprof
