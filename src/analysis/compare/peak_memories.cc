#include "analysis/compare/peak_memories.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <tuple>

#include "analysis/compare/diff.h"
#include "analysis/replay/snapshot_device.h"
#include "trace/holder_lines.h"
#include "trace/own_code.h"

namespace gpumemprof {
namespace {

constexpr size_t kMostLineText = 200;

/// "cpu" for host memory of every framework; else the backend: "cuda".
std::string device_kind(const Device& device) {
  if (is_host_blocks(device)) return device_name(device);
  if (is_host_memory(device)) return "cpu";
  std::string kind = backend_name(device);
  for (char& c : kind) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return kind;
}

std::string portable_file(std::string_view file, std::string_view folder) {
  const bool is_below = !folder.empty() && file.size() > folder.size() + 1 &&
                        file.starts_with(folder) && file[folder.size()] == '/';
  if (is_below && is_user_file(file)) return std::string(file.substr(folder.size() + 1));
  return std::string(aligned_file(file));
}

std::string cut_line(std::string_view text) {
  size_t end = std::min(text.size(), kMostLineText);
  if (end < text.size())
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return std::string(text.substr(0, end));
}

class PeakMeasurer {
 public:
  PeakMeasurer(const Analysis& analysis, const Tables& tables, std::string_view folder,
               const LineText& line_text)
      : analysis_(analysis), tables_(tables), folder_(folder), line_text_(line_text) {}

  std::vector<PeakMemory> measure() {
    for (const DeviceAnalysis& sum : analysis_.sums) consider(sum);  // never below one of its parts
    for (const DeviceAnalysis& device : analysis_.devices) consider(device);
    std::vector<PeakMemory> out;
    for (const auto& [kind, device] : highest_) out.push_back(memory(kind, *device));
    return out;
  }

 private:
  void consider(const DeviceAnalysis& device) {
    if (device.figures.peak_bytes == 0 || device.device >= tables_.devices.size()) return;
    const Device& of = tables_.devices[device.device];
    if (of.layer == Layer::kDriver) return;  // has the framework's memory in it
    const DeviceAnalysis*& best = highest_[device_kind(of)];
    if (best == nullptr || device.figures.peak_bytes > best->figures.peak_bytes) best = &device;
  }

  PeakMemory memory(const std::string& kind, const DeviceAnalysis& device) const {
    PeakMemory out{.kind = kind,
                   .basis = has_requested_sizes(device, tables_) ? "requested" : "allocated",
                   .peak_bytes = device.figures.peak_bytes,
                   .is_exact = is_exact(analysis_, device)};
    if (device.snapshot && device.snapshot->is_replayed)
      out.reserved_bytes = device.snapshot->replay.peak_reserved.bytes;
    else if (device.figures.has_totals)
      out.reserved_bytes = device.figures.peak_reserved_bytes;
    out.rank = rank_of(device);
    out.end_bytes = device.figures.live_bytes;
    out.lines = lines(device, device.holders_at_peak, &out.other_bytes);
    uint64_t others_at_end = 0;
    out.lines_at_end = lines(device, device.holders_at_end, &others_at_end);
    return out;
  }

  std::optional<uint32_t> rank_of(const DeviceAnalysis& device) const {
    const uint32_t process = tables_.devices[device.device].process;
    if (process >= tables_.processes.size()) return std::nullopt;
    const std::optional<uint32_t> own = tables_.processes[process].rank;
    const bool has_others = std::ranges::any_of(
        tables_.processes, [&](const Process& other) { return other.rank && other.rank != own; });
    return has_others ? own : std::nullopt;
  }

  std::vector<PeakLine> lines(const DeviceAnalysis& device, const std::vector<Holder>& holders,
                              uint64_t* other_bytes) const {
    std::vector<PeakLine> out;
    for (const HolderLine& holder : group_by_line(holders, tables_)) {
      if (out.size() == kMostPeakLines)
        *other_bytes += holder.bytes;
      else
        out.push_back(line(device, holder));
    }
    // Lines of as many bytes in an order that does not depend on the run.
    std::ranges::stable_sort(out, [](const PeakLine& a, const PeakLine& b) {
      return std::tie(b.bytes, a.file, a.line, a.function) <
             std::tie(a.bytes, b.file, b.line, b.function);
    });
    return out;
  }

  PeakLine line(const DeviceAnalysis& device, const HolderLine& holder) const {
    PeakLine out{.bytes = holder.bytes};
    if (holder.node == 0) return out;
    const Frame& frame = tables_.stacks.frame_of(holder.node);
    const std::string file(tables_.strings.get(frame.file));
    out.file = cut_line(portable_file(file, folder_));
    out.line = frame.line;
    out.function = cut_line(tables_.strings.get(frame.function));
    const uint32_t process = tables_.devices[device.device].process;
    if (line_text_ && frame.line != 0 && process < tables_.processes.size())
      out.source = cut_line(line_text_(tables_.processes[process], file, frame.line));
    return out;
  }

  const Analysis& analysis_;
  const Tables& tables_;
  const std::string_view folder_;
  const LineText& line_text_;
  std::map<std::string, const DeviceAnalysis*> highest_;  // by kind
};

}  // namespace

std::vector<PeakMemory> peak_memories(const Analysis& analysis, const Tables& tables,
                                      std::string_view folder, const LineText& line_text) {
  return PeakMeasurer(analysis, tables, folder, line_text).measure();
}

}  // namespace gpumemprof
