// How the work of a job is divided, by the names and sizes of the parameters that each rank holds
// and by the libraries whose code made them. What does not follow from these is unknown.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "analysis/ranks/find_ranks.h"
#include "base/path_parts.h"
#include "base/size.h"

namespace gpumemprof {
namespace {

using Names = std::map<uint32_t, uint64_t>;  // bytes by StringTable id

enum Library : uint8_t { kData, kSharded, kShardedOptimizer, kTensor, kPipeline, kExpert, kLibraries };
struct Code {
  Library library;
  std::string_view part;  // of a path
};
constexpr std::array<Code, 12> kCode = {{
    {kData, "torch/nn/parallel/distributed.py"},
    {kSharded, "torch/distributed/fsdp/"},
    {kSharded, "torch/distributed/_composable/fsdp/"},
    {kSharded, "deepspeed/runtime/zero/partition_parameters.py"},
    {kShardedOptimizer, "torch/distributed/optim/zero_redundancy_optimizer.py"},
    {kShardedOptimizer, "deepspeed/runtime/zero/stage_1_and_2.py"},
    {kTensor, "torch/distributed/tensor/parallel/"},
    {kTensor, "megatron/core/tensor_parallel/"},
    {kPipeline, "torch/distributed/pipelining/"},
    {kPipeline, "megatron/core/pipeline_parallel/"},
    {kExpert, "megatron/core/transformer/moe/"},
    {kExpert, "deepspeed/moe/"},
}};

/// Which of the code above is in each stack: an index in kCode + 1 for each Library, 0: none.
class CodeOfStacks {
 public:
  using Found = std::array<uint8_t, kLibraries>;

  explicit CodeOfStacks(const Tables& tables) {
    std::vector<Found> by_frame(tables.stacks.frame_count());
    for (uint32_t i = 0; i < by_frame.size(); ++i) {
      const std::string_view file = tables.strings.get(tables.stacks.frame(i).file);
      for (uint8_t c = 0; c < kCode.size(); ++c) {
        if (path_has(file, kCode[c].part)) by_frame[i][kCode[c].library] = c + 1;
      }
    }
    by_stack_.resize(tables.stacks.stack_count());
    for (uint32_t i = 1; i < by_stack_.size(); ++i) {
      const StackTable::Node& node = tables.stacks.node(i);
      if (node.frame < by_frame.size()) by_stack_[i] = by_frame[node.frame];
      if (node.parent < i) add(by_stack_[node.parent], &by_stack_[i]);
    }
  }
  Found of(uint32_t stack) const { return stack < by_stack_.size() ? by_stack_[stack] : Found{}; }
  static void add(const Found& from, Found* to) {
    for (size_t i = 0; i < from.size(); ++i) {
      if ((*to)[i] == 0) (*to)[i] = from[i];
    }
  }

 private:
  std::vector<Found> by_stack_;
};

/// What a rank holds at its peak.
struct Held {
  uint32_t rank = 0;
  Names parameters, optimizer;
  std::map<uint32_t, CodeOfStacks::Found> made_by;  // the parameters
  CodeOfStacks::Found code{};                       // all that allocated
};

Held held_by(const OneRank& rank, const DeviceAnalysis& memory, const CodeOfStacks& code) {
  Held out{.rank = rank.rank};
  for (const CategoryHolder& holder : memory.categories.at_peak) {
    if (holder.name == 0) continue;
    if (holder.category == Category::kOptimizerState) out.optimizer[holder.name] += holder.bytes;
    if (holder.category != Category::kParameter) continue;
    out.parameters[holder.name] += holder.bytes;
    CodeOfStacks::add(code.of(holder.stack), &out.made_by[holder.name]);
  }
  for (const Holder& holder : memory.totals) CodeOfStacks::add(code.of(holder.stack), &out.code);
  return out;
}

/// The module of a parameter: "layers.0.up" of "layers.0.up.weight".
std::string_view module_of(std::string_view name) {
  const size_t dot = name.rfind('.');
  return dot == name.npos ? name : name.substr(0, dot);
}

class Finder {
 public:
  Finder(const Tables& tables, const std::vector<Held>& ranks, JobRanks* job)
      : tables_(tables), ranks_(ranks), job_(job) {
    for (const Held& rank : ranks_) {
      for (const auto& [name, bytes] : rank.parameters) ++held_by_[name];
      CodeOfStacks::add(rank.code, &code_);
    }
  }

  void find() {
    for (const auto& [name, count] : held_by_) (count == ranks_.size() ? common_ : partial_).insert(name);
    find_expert();
    find_pipeline();
    find_in_common();
    if (job_->parallelism.empty() && job_->why_no_parallelism.empty())
      job_->why_no_parallelism =
          "the ranks hold different parameters, and no library's code tells why";
  }

 private:
  std::string_view text(uint32_t name) const { return tables_.strings.get(name); }
  std::string named(Library library) const {
    return code_[library] == 0 ? "" : std::string(kCode[code_[library] - 1].part);
  }
  void add(const char* kind, std::string evidence) {
    job_->parallelism.push_back({kind, printable_ascii(evidence)});
  }
  static std::string parameters(size_t count) {
    return std::to_string(count) + (count == 1 ? " parameter" : " parameters");
  }
  bool is_expert(uint32_t name) const {
    std::string lower(text(name));
    std::ranges::transform(lower, lower.begin(),
                           [](char c) { return c >= 'A' && c <= 'Z' ? char(c + 32) : c; });
    return lower.find("expert") != lower.npos;
  }

  /// Experts are on some ranks, what routes to them on all.
  void find_expert() {
    std::set<uint32_t> experts;
    for (uint32_t name : partial_) {
      if (is_expert(name)) experts.insert(name);
    }
    if (experts.empty()) return;
    add("expert", fmt::format("{} of experts, such as {}, are on some ranks only; {} on all",
                              parameters(experts.size()), text(*experts.begin()),
                              common_.empty() ? "none are" : parameters(common_.size()) + " are"));
    for (uint32_t name : experts) partial_.erase(name);
  }

  /// Stages hold different layers, or call them alike and are run by a schedule.
  void find_pipeline() {
    if (!partial_.empty()) {
      const std::string library = named(kPipeline);
      std::set<std::set<uint32_t>> stages;
      for (const Held& rank : ranks_) {
        std::set<uint32_t> mine;
        for (const auto& [name, bytes] : rank.parameters) {
          if (partial_.contains(name)) mine.insert(name);
        }
        stages.insert(std::move(mine));
      }
      size_t sum = 0;
      for (const auto& stage : stages) sum += stage.size();
      const bool are_apart = sum == partial_.size() && stages.size() > 1;
      if (library.empty() && !(are_apart && are_layers())) return;
      add("pipeline", fmt::format("the ranks hold {} different sets of parameters{}{}", stages.size(),
                                  are_apart ? " that share no parameter: " + modules()
                                            : ": " + modules(),
                                  library.empty() ? "" : "; " + library + " allocated memory"));
      return;
    }
    if (code_[kPipeline] != 0)
      add("pipeline",
          named(kPipeline) + " allocated memory; the stages use the same parameter names");
  }

  /// "layer0.up on rank 0, layer1.up on rank 1, …"
  std::string modules() const {
    constexpr size_t kMost = 4;
    std::string out;
    size_t shown = 0;
    for (const Held& rank : ranks_) {
      const auto own = std::ranges::find_if(
          rank.parameters, [&](const auto& one) { return partial_.contains(one.first); });
      if (own == rank.parameters.end()) continue;
      if (shown++ == kMost) return out + ", …";
      out += fmt::format("{}{} on rank {}", out.empty() ? "" : ", ", module_of(text(own->first)),
                         rank.rank);
    }
    return out;
  }

  /// Names with a number in them, as those of layers have.
  bool are_layers() const {
    return std::ranges::all_of(partial_, [&](uint32_t name) {
      return module_of(text(name)).find_first_of("0123456789") != std::string_view::npos;
    });
  }

  size_t made_by(Library library) const {
    size_t count = 0;
    for (uint32_t name : common_) {
      const auto found = ranks_.front().made_by.find(name);
      count += found != ranks_.front().made_by.end() && found->second[library] != 0;
    }
    return count;
  }

  /// What all ranks have by the same names: copies, or parts.
  void find_in_common() {
    if (common_.empty()) return;
    uint64_t bytes = 0;
    bool are_alike = true;
    for (uint32_t name : common_) {
      const uint64_t first = ranks_.front().parameters.at(name);
      bytes += first;
      for (const Held& rank : ranks_) are_alike &= rank.parameters.at(name) == first;
    }
    const std::string sizes = are_alike ? "of the same size on each rank, " + format_bytes(bytes)
                                        : "of different sizes";
    const size_t before = job_->parallelism.size();
    if (const size_t count = made_by(kSharded))
      add("sharded", fmt::format("{} of {} parameters, {}, were made by {}", count, common_.size(),
                                 sizes, named(kSharded)));
    if (const size_t count = made_by(kTensor))
      add("tensor", fmt::format("{} of {} parameters, {}, were made by {}", count, common_.size(),
                                sizes, named(kTensor)));
    const bool are_copies = are_alike && job_->parallelism.size() == before;
    if (are_copies && code_[kData] != 0)
      add("data",
          fmt::format("all ranks hold the same {}, {} on each rank, and {} allocated memory",
                      parameters(common_.size()), format_bytes(bytes), named(kData)));
    find_sharded_optimizer(are_copies);
    if (job_->parallelism.empty())
      job_->why_no_parallelism = fmt::format(
          "all ranks hold {} with the same names, {}; no library's code tells whether they are "
          "copies or shards",
          parameters(common_.size()), sizes);
  }

  void find_sharded_optimizer(bool are_copies) {
    std::map<uint32_t, size_t> ranks_with;
    for (const Held& rank : ranks_) {
      for (const auto& [name, bytes] : rank.optimizer) ++ranks_with[name];
    }
    const auto on_one = std::ranges::count(ranks_with, size_t{1},
                                           &std::pair<const uint32_t, size_t>::second);
    if (!are_copies || static_cast<size_t>(on_one) != ranks_with.size() || ranks_with.size() < 2)
      return;
    add("sharded optimizer",
        fmt::format("all ranks hold the same {}, but the optimizer state of each parameter is on "
                    "only one rank",
                    parameters(common_.size())));
  }

  const Tables& tables_;
  const std::vector<Held>& ranks_;
  JobRanks* const job_;
  std::map<uint32_t, size_t> held_by_;     // by how many ranks, by name
  std::set<uint32_t> common_, partial_;    // names
  CodeOfStacks::Found code_{};             // of all ranks
};

}  // namespace

void find_parallelism(const Analysis& analysis, const Tables& tables, JobRanks* job) {
  const CodeOfStacks code(tables);
  std::vector<Held> ranks;
  for (const OneRank& rank : job->ranks) {
    const DeviceAnalysis* memory = memory_of(analysis, rank);
    if (memory == nullptr || rank.parameters == 0) continue;
    ranks.push_back(held_by(rank, *memory, code));
  }
  if (ranks.size() < 2) {
    job->why_no_parallelism = "no two ranks have parameters with names at their peaks";
    return;
  }
  Finder(tables, ranks, job).find();
}

}  // namespace gpumemprof
