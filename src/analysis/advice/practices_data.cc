// Data that is read too early, as a whole, twice, or kept.
#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "analysis/advice/practices.h"
#include "analysis/categories/category_sums.h"
#include "analysis/categories/mapped_files.h"
#include "analysis/finding_figure.h"
#include "analysis/leaks/leak_findings.h"
#include "analysis/leaks/leaks.h"
#include "base/path_parts.h"
#include "base/size.h"

namespace gpumemprof {
namespace {

bool is_weight(Category category) {
  return category == Category::kParameter || category == Category::kBuffer ||
         category == Category::kOptimizerState || category == Category::kGradient;
}

/// Memory of torch.load() that no model took over, while steps go on. What was freed before a model
/// was called, a temporary, is not kept.
void find_loaded(const PracticeEvidence& evidence, Candidates* out) {
  const Tables& tables = evidence.tables;
  PracticeCandidate candidate(*evidence.device);
  uint64_t bytes = 0;
  bool is_before_training = true;
  // What an optimizer took over is told when its next step ends.
  const PeakWork& peak = evidence.device->categories.peak;
  const bool may_be_state = peak.steps != 0 && !peak.step_ended;
  for (const CategoryHolder& holder : evidence.at_peak()) {
    if (may_be_state && holder.category == Category::kUnknown) continue;
    if (is_weight(holder.category) || holder.category == Category::kTemporary ||
        !is_loaded(tables, holder.stack))
      continue;
    bytes += holder.bytes;
    candidate.add_stack(holder.stack, tables);
    const StackSizes* made = evidence.made_by(holder.stack);
    is_before_training &= !made || made->last_pass <= 1;
  }
  if (bytes == 0) return;
  candidate.tell("checkpoint_file_kept",
                 "the checkpoint loaded at " + evidence.line_of(candidate.advice.stack) +
                     " is kept after it was copied into the model: " + format_bytes(bytes),
                 "Del the dictionary as soon as it is copied into the model",
                 {{"loaded_bytes", bytes}});
  if (is_loaded(tables, peak.stack))
    candidate.advice.title += " at the peak, with the one that was being loaded";
  if (is_before_training) {
    candidate.advice.fix +=
        ". If the optimizer is made after that, and nobody writes the file again while the program "
        "runs, torch.load(…, mmap=True) with load_state_dict(…, assign=True) needs no copy";
  }
  candidate.change.rule = TraceChange::Rule::kGoneAtCall;
  for (const auto& [stack, sizes] : evidence.graph.allocated)
    if (is_in_call(evidence.work_of(stack).phase)) candidate.change.calls.insert(stack);
  if (const auto used = evidence.graph.loaded_and_used.find(candidate.change.device);
      used != evidence.graph.loaded_and_used.end())
    candidate.change.kept_events = used->second;
  out->push_back(std::move(candidate));
}

/// The text of the innermost line of code.
std::string text_where_made(const PracticeEvidence& evidence, uint32_t stack) {
  const Tables& tables = evidence.tables;
  const uint32_t process = tables.devices[evidence.device->device].process;
  if (!evidence.line_text || process >= tables.processes.size()) return "";
  const uint32_t node =
      tables.stacks.find_node(stack, [](const Frame& frame) { return frame.line != 0; });
  const Frame& frame = tables.stacks.frame_of(node);
  return evidence.line_text(tables.processes[process], std::string(tables.strings.get(frame.file)),
                            frame.line);
}

/// torch.zeros(…), x.new_full(…): the program writes into it later.
bool makes_buffer(std::string_view text) {
  const auto is_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
  };
  for (const std::string_view name : {"zeros", "ones", "empty", "full"}) {
    for (size_t at = 0; (at = text.find(name, at)) != std::string_view::npos; at += name.size()) {
      const std::string_view before = text.substr(0, at), behind = text.substr(at + name.size());
      if (!behind.starts_with('(') && !behind.starts_with("_like(")) continue;
      if (before.empty() || !is_word(before.back()) || before.ends_with("new_")) return true;
    }
  }
  return false;
}

/// No buffer that the program fills. What no model made may be data too where a model is trained:
/// autograd does not save a set of which every step copies a part. Else it is as likely a cache
/// that is made in advance, or, made after the last backward pass, a result. What a library makes
/// where it is called to compute is its own.
bool is_data(const CategoryHolder& holder, const PracticeEvidence& evidence,
             const std::set<uint32_t>& computing_lines) {
  const StackSizes* made = evidence.made_by(holder.stack);
  const uint64_t passes = evidence.graph.backward_passes;
  const bool may_be = holder.why == WhyUnknown::kOutside && passes > 0 && made &&
                      made->last_pass <= passes;
  if (holder.category != Category::kInput && !may_be) return false;
  if (evidence.work_of(holder.stack).phase != WorkPhase::kDataLoading &&
      is_made_by_computation(evidence.tables, holder.stack, computing_lines))
    return false;
  const std::string text = text_where_made(evidence, holder.stack);
  if (text.empty()) return holder.category == Category::kInput;
  return !makes_buffer(text);
}

/// "train.py:4 (9.77 MiB), train.py:5 (4.88 MiB)"; of one line its name alone.
std::string lines_with_bytes(const std::vector<std::pair<std::string, uint64_t>>& lines) {
  constexpr size_t kMostLines = 3;
  if (lines.size() == 1) return lines[0].first;
  std::string text;
  for (size_t i = 0; i < std::min(lines.size(), kMostLines); ++i)
    text += (i > 0 ? ", " : "") + lines[i].first + " (" + format_bytes(lines[i].second) + ')';
  return lines.size() > kMostLines ? text + ", …" : text;
}

/// One large data tensor, allocated once and live to the end, of which each step uses a part.
void find_whole_data(const PracticeEvidence& evidence, Candidates* out) {
  constexpr uint64_t kMuchMore = 4;  // than the largest activation: a batch would be like that
  constexpr uint64_t kFew = 2;       // data and its labels, say, of one line
  const Tables& tables = evidence.tables;
  uint64_t largest_activation = 0;  // or temporary
  for (const CategoryHolder& holder : evidence.at_peak()) {
    if (holder.category != Category::kActivation && holder.category != Category::kTemporary)
      continue;
    if (const StackSizes* made = evidence.made_by(holder.stack))
      largest_activation = std::max(largest_activation, made->largest_bytes);
  }
  PracticeCandidate candidate(*evidence.device);
  uint64_t bytes = 0;
  const std::set<uint32_t> lines_of_calls = computing_lines(evidence);
  std::vector<std::pair<std::string, uint64_t>> lines;
  for (const CategoryHolder& holder : evidence.at_peak()) {
    const StackSizes* made = evidence.made_by(holder.stack);
    // Batches are made again and again, and are many where they are kept.
    if (!made || made->count != holder.count || holder.count > kFew) continue;
    if (holder.bytes / holder.count < kMuchMore * largest_activation) continue;
    if (is_loaded(tables, holder.stack) || !is_data(holder, evidence, lines_of_calls)) continue;
    bytes += holder.bytes;
    candidate.add_stack(holder.stack, tables);
    const std::string line = evidence.line_of(holder.stack);
    const auto known = std::ranges::find(lines, line, &std::pair<std::string, uint64_t>::first);
    (known == lines.end() ? lines.emplace_back(line, 0) : *known).second += holder.bytes;
  }
  if (bytes == 0 || largest_activation == 0) return;
  const std::string made_at = lines_with_bytes(lines);
  candidate.tell("data_in_memory",
                 "all data made at " + made_at + " stays in memory for the whole run: " +
                     format_bytes(bytes) + "; the largest block of a pass is " + format_bytes(largest_activation),
                 "Read the data of " + made_at +
                     " in batches from files: OptimizedDataset and create_optimized_dataloader, "
                     "torch.load(…, mmap=True) or numpy.memmap",
                 {{"data_bytes", bytes}, {"largest_activation_bytes", largest_activation}});
  out->push_back(std::move(candidate));
}

/// What is behind a finding that is one of several processes'.
std::string of_processes(const Finding& finding) {
  const uint64_t* processes = find_figure(finding, "processes");
  if (!processes) return "";
  return "; " + std::to_string(*processes) +
         " processes do the same, and these are the figures of the worst";
}

/// It keeps objects that steps pass between: models, copies of their weights. The last one may be
/// in use.
bool keeps_now_and_then(const Finding& finding) {
  const auto rate = std::ranges::find(finding.rates, "survivors_a_step",
                                      [](const auto& one) { return std::string_view(one.first); });
  return finding.name == "models_kept" || (rate != finding.rates.end() && rate->second < 0.5);
}

/// Lines that keep more with every step, as the leaks have it; what was made in a step goes with
/// it, or with the next that is made so.
void find_leaking(const PracticeEvidence& evidence, const DeviceAnalysis& device,
                  Candidates* out) {
  std::map<std::string, PracticeCandidate> by_name;
  for (const Finding& finding : evidence.analysis.findings) {
    if (finding.kind != FindingKind::kLeak || finding.name == "gradients_kept") continue;
    if (finding.device != device.device) continue;
    uint64_t bytes = leak_bytes_at_peak(finding, device).value_or(0);
    if (bytes == 0) continue;  // it begins after the peak
    // Some of what its stacks made is held by others.
    if (find_fact(finding, kMade)) bytes = std::min(bytes, finding.bytes.value_or(0));
    const bool is_input = keeps_inputs(finding, device);
    PracticeCandidate& candidate =
        by_name.try_emplace(is_input ? "inputs" : finding.name, device).first->second;
    const bool stays_until_next = keeps_now_and_then(finding);
    for (const uint32_t stack : finding.stacks) {
      candidate.change.group_of[stack] = 0;
      const WorkPhase phase = evidence.work_of(stack).phase;
      if (stays_until_next && phase != WorkPhase::kBackward && phase != WorkPhase::kOptimizer)
        candidate.change.calls.insert(stack);
    }
    if (candidate.advice.kind.empty()) {
      candidate.tell(is_input                   ? "inputs_kept"
                     : finding.name == "growth" ? "leak"
                                                : finding.name,
                     finding.title + of_processes(finding), finding.fix, {{"kept_bytes", 0}});
      candidate.advice.stack = finding.stack;
    }
    uint64_t& kept_bytes = candidate.advice.evidence[0].second;
    kept_bytes += bytes;
    // Where steps are marked it is known when it could have been freed, and simulated.
    if (find_fact(finding, "round") || find_fact(finding, kMade)) candidate.held_bytes = kept_bytes;
  }
  for (auto& [name, candidate] : by_name) {
    candidate.is_of_leak = true;
    candidate.change.rule = candidate.change.calls.empty() ? TraceChange::Rule::kGoneAfterStep
                                                           : TraceChange::Rule::kGoneAtNext;
    candidate.change.with_computed = candidate.change.rule == TraceChange::Rule::kGoneAfterStep;
    if (!candidate.change.group_of.empty()) out->push_back(std::move(candidate));
  }
}

/// What a worker makes in one task, of the stacks that it holds at the peak. Where nothing tells its
/// tasks apart, each stack makes one block of a batch.
uint64_t batch_bytes_of(const PracticeEvidence& evidence, const DeviceAnalysis& device,
                        const absl::flat_hash_map<uint32_t, uint32_t>& stacks) {
  const uint32_t process = evidence.tables.devices[device.device].process;
  uint64_t bytes = 0;
  for (const auto& [stack, group] : stacks) {
    const auto batches = evidence.graph.loader_batches.find({process, stack});
    if (batches != evidence.graph.loader_batches.end() && batches->second.tasks > 1)
      bytes += batches->second.largest_bytes;
    else if (const StackSizes* made = evidence.made_by(stack))
      bytes += made->largest_bytes;
  }
  return bytes;
}

/// Batches that workers made ahead lie in shared memory until they are taken. Of several workers the
/// one that holds most is told.
void find_prefetched(const PracticeEvidence& evidence, Candidates* out) {
  constexpr uint64_t kEnough = 2;  // batches of each worker, DataLoader's default
  const Tables& tables = evidence.tables;
  std::optional<PracticeCandidate> most;
  uint64_t workers = 0, most_bytes = 0, most_blocks = 0, batch_bytes = 0;
  for (const DeviceAnalysis& device : evidence.analysis.devices) {
    if (!is_shared_memory(tables, device.device)) continue;
    PracticeCandidate candidate(device);
    uint64_t bytes = 0, count = 0;
    for (const Holder& holder : device.holders_at_peak) {
      if (!is_of_loader_worker(tables, holder.stack)) continue;
      bytes += holder.bytes, count += holder.count;
      candidate.add_stack(holder.stack, tables);
    }
    const uint64_t batch = batch_bytes_of(evidence, device, candidate.change.group_of);
    if (bytes <= (kEnough + 1) * batch) continue;  // and the one that it makes
    ++workers;
    if (most && bytes <= most_bytes) continue;
    most = std::move(candidate);
    most_bytes = bytes, most_blocks = count, batch_bytes = batch;
  }
  if (!most) return;
  most->tell(
      "prefetch",
      (workers == 1 ? "a DataLoader worker holds " + format_bytes(most_bytes)
                    : std::to_string(workers) + " DataLoader workers hold up to " +
                          format_bytes(most_bytes) + " each") +
          " of prefetched batches, " + format_bytes(batch_bytes) + " a batch",
      "Give the DataLoader prefetch_factor=2 and no more workers than the model keeps busy: "
      "create_optimized_dataloader",
      {{"ahead_bytes", most_bytes}, {"batch_bytes", batch_bytes}, {"blocks", most_blocks}});
  most->change.stays_bytes = (kEnough + 1) * batch_bytes;
  out->push_back(std::move(*most));
}

/// Of a program that ran out of memory: what goes with one batch, but for the part that stays.
void find_batch(const PracticeEvidence& evidence, Candidates* out) {
  if (evidence.analysis.ends.refused.empty()) return;
  PracticeCandidate candidate(*evidence.device);
  uint64_t bytes = 0;
  for (const CategoryHolder& holder : evidence.at_peak()) {
    if (!is_of_batch(holder, evidence.tables)) continue;
    bytes += holder.bytes;
    candidate.tell_line(holder.stack, holder.bytes, evidence.tables);
  }
  const std::optional<BatchParts> parts = batch_parts(evidence.analysis.ends);
  if (bytes == 0 || !parts) return;
  // What an earlier attempt holds, no batch of the next one makes smaller.
  const auto is_held = [](const Finding& finding) { return finding.name == kHeldAttempt; };
  if (std::ranges::any_of(evidence.analysis.findings, is_held)) return;
  candidate.held_bytes = bytes - bytes / parts->count;
  candidate.tell("smaller_batch",
                 "activations, inputs and temporaries hold " + format_bytes(bytes) +
                     " at the peak, most of them from " + evidence.line_of(candidate.advice.stack) +
                     ". The step ended there: its rest may need more",
                 "Halve the batch and call optimizer.step() after every second backward pass, with "
                 "the loss divided by two",
                 {{"held_bytes", bytes}});
  candidate.advice.cost = "two passes per update; batch normalization sees half a batch";
  if (parts->count != 2) {
    const std::string count = std::to_string(parts->count);
    candidate.advice.fix = "Use at most 1/" + count + " of the batch and call optimizer.step() " +
                           "after " + count + " backward passes, with the loss divided by " +
                           count + ": " + format_bytes(parts->fitting_bytes) + " fit where " +
                           format_bytes(parts->refused_bytes) + " were refused";
    candidate.advice.cost = count + " passes per update; batch normalization sees 1/" + count +
                            " of a batch";
  }
  // What the rest of the step would have needed, its backward pass above all, was never reached.
  if (evidence.device->step_levels.steps() == 0)
    candidate.advice.fix += ". No step ended, so the batch may have to be smaller still";
  out->push_back(std::move(candidate));
}

}  // namespace

std::optional<BatchParts> batch_parts(const ProgramEnds& ends) {
  BatchParts parts;
  for (const RefusedRequest& refused : ends.refused) {
    const auto left = left_bytes(refused);
    if (!left) continue;
    const uint64_t wanted = refused.requested->most_bytes;
    const uint64_t fits = std::max(*left, refused.told ? refused.told->largest_served_bytes : 0);
    if (fits == 0 || wanted / kMostBatchParts >= fits) return std::nullopt;
    const uint64_t count = (wanted + fits - 1) / fits;
    if (count > parts.count) parts = {count, fits, wanted};
  }
  return parts;
}

void find_data_practices(const PracticeEvidence& evidence, Candidates* candidates) {
  find_prefetched(evidence, candidates);
  for (const DeviceAnalysis& one : evidence.analysis.devices) {
    if (is_of_practices(one, evidence.tables) || is_shared_memory(evidence.tables, one.device))
      find_leaking(evidence, one, candidates);
  }
  if (!evidence.device) return;
  find_loaded(evidence, candidates);
  find_whole_data(evidence, candidates);
  find_batch(evidence, candidates);
}

}  // namespace gpumemprof
