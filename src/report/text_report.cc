#include "report/text_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "analysis/leak_names.h"
#include "analysis/op_names.h"
#include "base/size.h"
#include "report/category_text.h"
#include "report/driver_report.h"
#include "report/end_words.h"
#include "report/explanation.h"
#include "report/facts.h"
#include "report/finding_words.h"
#include "report/machine_text.h"
#include "report/pool_text.h"
#include "report/score_report.h"
#include "report/snapshot_words.h"
#include "report/user_code.h"
#include "report/words.h"

namespace gpumemprof {
namespace {

constexpr size_t kHeadlineHolders = 3;
constexpr size_t kMostRows = 10;
constexpr size_t kInnermostRows = 4;
constexpr size_t kPinningRows = 8;
constexpr size_t kTextWidth = 98;

class TextReport {
 public:
  TextReport(const Analysis& analysis, const Tables& tables, const TextOptions& options)
      : analysis_(analysis), tables_(tables), options_(options) {}

  std::string write() {
    const DeviceAnalysis* device = main_device(analysis_, tables_);
    write_answer(device);
    for (const std::string& text : caveats(analysis_, tables_)) line(yellow("Note: ") + text);
    if (device) write_explanation(*device);
    write_findings();
    if (analysis_.score.value || !analysis_.ends.failure.empty()) {
      line();
      line(score_sentence(analysis_.score));
    }
    for (const DeviceAnalysis& each : analysis_.devices) {
      if (each.snapshot) write_ooms(each);
    }
    if (device) {
      write_categories(*device);
      write_holders(*device);
      write_work(*device);
      if (device->snapshot) write_pinning(*device->snapshot);
      if (device->pool) (out_ += '\n') += pool_text(*device->pool, options_.color);
      write_temporaries(*device);
    }
    write_driver();
    if (!analysis_.devices.empty()) write_devices();
    write_machine();
    if (tables_.processes.size() > 1) write_processes();
    write_threads();
    write_loss();
    return std::move(out_);
  }

 private:
  void line(std::string_view text = {}) { (out_ += text) += '\n'; }
  void title(std::string_view text) {
    line();
    line(bold(text));
  }
  std::string paint(std::string_view code, std::string_view text) const {
    return options_.color ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : std::string(text);
  }
  std::string bold(std::string_view text) const { return paint("1", text); }
  std::string yellow(std::string_view text) const { return paint("33", text); }
  std::string dim(std::string_view text) const { return paint("2", text); }
  void more(size_t total, size_t shown, std::string_view noun) {
    if (total > shown) line(dim(fmt::format("  and {} more", format_plural(total - shown, noun))));
  }

  void write_answer(const DeviceAnalysis* device) {
    for (const std::string& text : end_sentences(analysis_.ends, options_.working_folder))
      line(paint("1;31", text));
    write_first_oom();
    if (device) {
      line(bold(peak_sentence(analysis_, tables_, *device)));
      const std::vector<HolderLine> holders = group_by_line(device->holders_at_peak, tables_);
      for (size_t i = 0; i < std::min(kHeadlineHolders, holders.size()); ++i) {
        line(fmt::format("  {:>9}  {:>6}  {}", format_bytes(holders[i].bytes),
                         format_percent(holders[i].bytes, device->figures.peak_bytes),
                         headline_text(tables_, holders[i].node, options_.working_folder)));
      }
    } else {
      line(bold(analysis_.events == 0 ? "No events: nothing was recorded."
                : analysis_.driver
                    ? "No framework allocated anything; what the CUDA driver saw is below."
                    : "Nothing was allocated in this recording."));
    }
    if (device && device->snapshot) {
      line(reserved_sentence(*device->snapshot));
      line(replay_sentence(*device->snapshot));
    }
    const std::string loss = loss_sentence(analysis_.loss);
    line(is_complete(analysis_.loss) ? loss : paint("1;31", loss));
  }

  std::string name_of(const DeviceAnalysis& device) const { return memory_name(device, tables_); }

  /// Nothing matters more to who reads this.
  void write_first_oom() {
    for (const DeviceAnalysis& device : analysis_.devices) {
      if (!device.snapshot || device.snapshot->ooms.empty()) continue;
      const OomExplanation& oom = device.snapshot->ooms.front();
      line(paint("1;31", oom_sentence(oom, *device.snapshot, name_of(device)) + "."));
      if (const OomTrial* best = best_trial(oom)) {
        line(bold("It would have fitted with " + printable(best->settings)) + " (simulated).");
      }
      return;
    }
  }

  void write_ooms(const DeviceAnalysis& device) {
    for (const OomExplanation& oom : device.snapshot->ooms) {
      title("Out of memory on " + name_of(device));
      for (const std::string& text :
           oom_details(oom, *device.snapshot, tables_, options_.working_folder)) {
        line("  " + text);
      }
    }
  }

  void write_explanation(const DeviceAnalysis& device) {
    title("The peak in plain words");
    const std::string text = explain_peak(analysis_, tables_, device, options_.working_folder).text;
    for (const std::string& row : wrapped(text, kTextWidth)) line("  " + row);
  }

  void write_findings() {
    if (analysis_.findings.empty()) return;
    title("Findings");
    for (const Finding& finding : analysis_.findings) {
      line(fmt::format("  {:>8}  {}: {}.", severity_name(finding.severity),
                       device_name(device_at(tables_, finding.device)), printable(finding.title)));
      write_facts(finding);
      if (!finding.fix.empty()) line(fmt::format("{:12}Fix: {}.", "", printable(finding.fix)));
    }
  }

  void write_facts(const Finding& finding) {
    if (finding.kind != "leak" && finding.kind != "sizes_rise" && finding.kind != kGrowthInLoop) {
      return;
    }
    if (finding.stack != 0) {
      line(dim(fmt::format("{:12}{}", "",
                           headline_text(tables_, finding.stack, options_.working_folder))));
    }
    for (const std::string& text : finding_details(finding)) {
      line(fmt::format("{:12}{}", "", printable(text)));
    }
  }

  void write_pinning(const SnapshotDevice& device) {
    if (!device.is_consistent || !device.at_peak || device.at_peak->pinning.empty()) return;
    const std::vector<PinningStack>& pinning = device.at_peak->pinning;
    title("What causes fragmentation at the peak");
    line(dim(
        fmt::format("  {:>9}  {:>9}  {:>9}  {:>8}", "alone", "shared", "its live", "segments")));
    const size_t shown = std::min(kPinningRows, pinning.size());
    for (size_t i = 0; i < shown; ++i) {
      const PinningStack& by = pinning[i];
      line(fmt::format(
          "  {:>9}  {:>9}  {:>9}  {:>8}  {}", format_bytes(by.alone_bytes),
          format_bytes(by.pinned_bytes - by.alone_bytes), format_bytes(by.live_bytes),
          format_count(by.segments),
          headline_text(tables_, headline_node(tables_, by.stack), options_.working_folder)));
    }
    more(pinning.size(), shown, "stack");
  }

  void write_stack(uint32_t stack) {
    const uint32_t headline = headline_node(tables_, stack);
    size_t hidden = 0;
    const auto flush_hidden = [&] {
      if (hidden != 0)
        line(dim(fmt::format("{:13}… {} of libraries", "", format_plural(hidden, "frame"))));
      hidden = 0;
    };
    for (uint32_t node = stack; node != 0; node = tables_.stacks.node(node).parent) {
      const Frame& frame = tables_.stacks.frame(tables_.stacks.node(node).frame);
      const bool show = options_.full_stacks || node == stack || node == headline ||
                        is_user_file(tables_.strings.get(frame.file));
      if (!show) {
        ++hidden;
        continue;
      }
      flush_hidden();
      line(fmt::format("{:13}{}", "", frame_text(tables_, node)));
    }
    flush_hidden();
  }

  /// Where a line of the user's led to: he rarely calls an allocator himself.
  void write_innermost(const HolderLine& holder) {
    if (holder.stacks.size() < 2) return;
    const std::vector<HolderLine> inner = group_by_innermost(holder.stacks, tables_);
    const size_t shown = std::min(kInnermostRows, inner.size());
    for (size_t i = 0; i < shown; ++i) {
      line(fmt::format("{:11}{:>9}  in {}", "", format_bytes(inner[i].bytes),
                       headline_text(tables_, inner[i].node, options_.working_folder)));
    }
    if (inner.size() > shown) {
      line(dim(fmt::format("{:22}and {}", "", format_plural(inner.size() - shown, "more place"))));
    }
  }

  void write_stacks(const HolderLine& holder) {
    const size_t count = holder.stacks.size();
    const size_t shown = options_.full_stacks ? count : 1;
    for (size_t i = 0; i < shown; ++i) {
      if (holder.stacks[i].stack == 0) continue;
      if (count > 1) {
        const std::string which =
            shown == 1 ? fmt::format("the largest of its {} stacks", format_count(count))
                       : fmt::format("stack {} of {}", i + 1, count);
        line(dim(
            fmt::format("{:11}{:>9}  in {}:", "", format_bytes(holder.stacks[i].bytes), which)));
      }
      write_stack(holder.stacks[i].stack);
    }
  }

  void write_holders(const DeviceAnalysis& device) {
    title(is_moment(device) ? "What was live, by line of your code"
                            : "What was live at the peak, by line of your code");
    const std::vector<HolderLine> holders = group_by_line(device.holders_at_peak, tables_);
    const size_t shown = std::min(options_.holders, holders.size());
    for (size_t i = 0; i < shown; ++i) {
      const HolderLine& holder = holders[i];
      line(fmt::format("  {:>9}  {:>6}  {}  {}", format_bytes(holder.bytes),
                       format_percent(holder.bytes, device.figures.peak_bytes),
                       bold(headline_text(tables_, holder.node, options_.working_folder)),
                       dim(format_plural(holder.count, "block"))));
      write_innermost(holder);
      write_stacks(holder);
    }
    more(holders.size(), shown, "line");
    if (!options_.full_stacks) line(dim("  --full-stacks shows every frame of every stack."));
  }

  void write_categories(const DeviceAnalysis& device) {
    const std::vector<std::string> lines = category_lines(device, tables_, kMostRows);
    if (lines.empty()) return;
    title("Memory at the peak, by type");
    for (const std::string& text : lines) line("  " + text);
  }

  /// Of a framework that names the operation an allocation is for.
  void write_work(const DeviceAnalysis& device) {
    if (!is_tensorflow(device_at(tables_, device.device))) return;
    title(is_moment(device) ? "What was live, by phase and layer of TensorFlow"
                            : "What was live at the peak, by phase and layer of TensorFlow");
    const std::vector<WorkHolder> groups = group_by_work(device.holders_at_peak, tables_);
    const size_t shown = std::min(kMostRows, groups.size());
    for (size_t i = 0; i < shown; ++i) {
      const WorkHolder& group = groups[i];
      std::string layer = printable(group.layer);
      if (layer.empty() && !group.function.empty()) {
        layer = (group.is_xla ? "XLA cluster " : "call of ") + printable(group.function);
      }
      if (layer.empty()) layer = "(no layer in the operation's name)";
      line(fmt::format("  {:>9}  {:>6}  {:17}  {:7}  {}  {}", format_bytes(group.bytes),
                       format_percent(group.bytes, device.figures.peak_bytes),
                       phase_name(group.phase), mode_name(group.mode), layer,
                       dim(format_plural(group.count, "block"))));
    }
    more(groups.size(), shown, "layer");
  }

  void write_temporaries(const DeviceAnalysis& device) {
    if (device.temporary_count == 0) return;
    title(
        fmt::format("Temporaries: freed again within {}", format_duration(analysis_.temporary_ns)));
    std::vector<Holder> as_holders;
    for (const Temporary& t : device.temporaries) as_holders.push_back({t.stack, t.bytes, t.count});
    std::vector<HolderLine> lines = group_by_line(as_holders, tables_);
    std::stable_sort(lines.begin(), lines.end(),
                     [](const HolderLine& a, const HolderLine& b) { return a.count > b.count; });
    line(fmt::format(
        "  {} of {} ({}), {} in all", format_count(device.temporary_count),
        format_plural(action_count(device.figures, Action::kAlloc), "allocation"),
        format_percent(device.temporary_count, action_count(device.figures, Action::kAlloc)),
        format_bytes(device.temporary_bytes)));
    const size_t shown = std::min(kMostRows / 2, lines.size());
    for (size_t i = 0; i < shown; ++i) {
      line(fmt::format("  {:>9} times  {:>9}  {}", format_count(lines[i].count),
                       format_bytes(lines[i].bytes),
                       headline_text(tables_, lines[i].node, options_.working_folder)));
    }
    more(lines.size(), shown, "line");
  }

  void write_driver() {
    for (const std::string& text : driver_lines(analysis_, tables_)) {
      text.starts_with(' ') ? line(text) : title(text);
    }
  }

  void write_devices() {
    title("Devices");
    line(dim(fmt::format("  {:>9}  {:>9}  {:>10}  {:>12}  {:>12}  {:>9}", "peak", "at end",
                         "allocated", "allocations", "per second", "reserved")));
    std::vector<const DeviceAnalysis*> order;
    for (const DeviceAnalysis& sum : analysis_.sums) order.push_back(&sum);
    for (const DeviceAnalysis& device : analysis_.devices) order.push_back(&device);
    std::stable_sort(order.begin(), order.end(),
                     [](const DeviceAnalysis* a, const DeviceAnalysis* b) {
                       return a->figures.peak_bytes > b->figures.peak_bytes;
                     });
    const size_t shown = std::min<size_t>(kMostRows * 2, order.size());
    for (size_t i = 0; i < shown; ++i) {
      const DeviceAnalysis& device = *order[i];
      const DeviceFigures& figures = device.figures;
      const uint64_t allocs = action_count(figures, Action::kAlloc);
      const Device& memory = device_at(tables_, device.device);
      line(fmt::format("  {:>9}  {:>9}  {:>10}  {:>12}  {:>12}  {:>9}  {}{}",
                       format_bytes(figures.peak_bytes), format_bytes(figures.live_bytes),
                       format_bytes(figures.total_bytes), format_count(allocs),
                       format_count(static_cast<uint64_t>(rate_per_second(allocs, device))),
                       peak_reserved_text(device).value_or("-"), memory_name(device, tables_),
                       device.snapshot && !device.snapshot->is_recorded
                           ? ""
                           : ", " + process_label(process_at(tables_, memory.process), 32)));
    }
    more(order.size(), shown, "device");
  }

  void write_machine() {
    const std::vector<std::string> lines = machine_lines(analysis_);
    if (lines.empty()) return;
    title("The machine during the run");
    for (const std::string& text : lines) line("  " + text);
  }

  void write_processes() {
    title("Processes");
    line(dim(fmt::format("  {:>12}  {:>12}  {:>10}", "events", "allocations", "allocated")));
    const size_t shown = std::min<size_t>(kMostRows * 2, tables_.processes.size());
    for (size_t i = 0; i < shown; ++i) {
      const Process& process = tables_.processes[i];
      const ProcessAnalysis sums =
          i < analysis_.processes.size() ? analysis_.processes[i] : ProcessAnalysis{};
      line(fmt::format(
          "  {:>12}  {:>12}  {:>10}  {}{}", format_count(sums.events),
          format_count(sums.alloc_count), format_bytes(sums.alloc_bytes), process_label(process),
          process.exited_cleanly ? "" : ", no clean exit (killed, _exit, or still running)"));
    }
    more(tables_.processes.size(), shown, "process");
  }

  void write_threads() {
    std::vector<size_t> order;
    std::set<uint32_t> processes;
    for (size_t i = 0; i < analysis_.threads.size(); ++i) {
      if (analysis_.threads[i].alloc_count == 0) continue;
      order.push_back(i);
      processes.insert(tables_.threads[i].process);
    }
    if (order.size() <= processes.size())
      return;  // one a process: the table of processes says it all
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return analysis_.threads[a].alloc_bytes > analysis_.threads[b].alloc_bytes;
    });
    title("Threads that allocated");
    line(dim(fmt::format("  {:>12}  {:>10}", "allocations", "allocated")));
    const size_t shown = std::min(kMostRows, order.size());
    for (size_t i = 0; i < shown; ++i) {
      const Thread& thread = tables_.threads[order[i]];
      const ThreadAnalysis& sums = analysis_.threads[order[i]];
      const uint32_t pid = process_at(tables_, thread.process).pid;
      std::string name = thread.tid == 0 ? "" : fmt::format("{} ", thread.tid);
      name += printable(thread.name);
      if (pid != 0) name += fmt::format(" of process {}", pid);
      line(fmt::format("  {:>12}  {:>10}  thread {}", format_count(sums.alloc_count),
                       format_bytes(sums.alloc_bytes), name));
    }
    more(order.size(), shown, "thread");
  }

  /// The answer names the first reasons only.
  void write_loss() {
    const std::vector<LossReason>& reasons = analysis_.loss.reasons;
    if (reasons.size() <= kReasonsInSentence) return;
    title("What was lost or not seen");
    for (const LossReason& reason : reasons) line("  " + reason_text(reason));
  }

  const Analysis& analysis_;
  const Tables& tables_;
  const TextOptions& options_;
  std::string out_;
};

}  // namespace

std::string text_report(const Analysis& analysis, const Tables& tables,
                        const TextOptions& options) {
  return TextReport(analysis, tables, options).write();
}

}  // namespace gpumemprof
