#include "cli/trace_subjects.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/estimate.h"
#include "cli/python_program.h"
#include "cli/trace_child.h"
#include "report/words.h"

namespace gpumemprof {
namespace {

constexpr uint64_t kLowBatch = 2, kHighBatch = 4;  // one sample is refused by batch normalisation

class ModelSubject : public TraceSubject {
 public:
  ModelSubject(const EstimateArguments& arguments, LoopVariant variant)
      : arguments_(arguments), variant_(std::move(variant)) {}

  Result<StepTrace> trace(uint64_t batch) override {
    auto folder = TraceFolder::make();
    if (!folder) return std::unexpected(folder.error());
    const nlohmann::json job = {{"model", arguments_.model},
                                {"batch", batch},
                                {"optimizer", variant_.optimizer},
                                {"precision", variant_.precision},
                                {"checkpointing", arguments_.checkpointing},
                                {"inference", arguments_.inference},
                                {"file", "model.trace"}};
    const std::string jobs =
        nlohmann::json::array({job}).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    auto status =
        run_traced({active_python(), "-m", "gpumemprof._children.estimate", folder->path(), jobs},
                   {{"GPUMEMPROF_ESTIMATE", ""}});
    if (!status) return std::unexpected(status.error());
    auto trace = trace_in(*folder, *status);
    if (!trace && folder->reason().empty()) {
      return fail(ErrorCode::kUnsupported, "could not start tracing in " + active_python() +
                                               ": install gpumemprof and torch there, or set "
                                               "GPUMEMPROF_PYTHON to the Python to use");
    }
    return trace;
  }

 private:
  const EstimateArguments& arguments_;
  LoopVariant variant_;
};

class ScriptSubject : public TraceSubject {
 public:
  explicit ScriptSubject(const EstimateArguments& arguments) : arguments_(arguments) {}

  Result<StepTrace> trace(uint64_t batch) override {
    if (!is_checked_) {
      if (auto fine = check_that_python_has_tracer(arguments_.command); !fine)
        return std::unexpected(fine.error());
      is_checked_ = true;
    }
    auto trace = trace_on("meta", batch);
    if (trace || trace.error().code != ErrorCode::kUnsupported || is_final_) return trace;
    const std::string reason = trace.error().message;
    if (!arguments_.on_host) {
      return fail(ErrorCode::kUnsupported,
                  reason + "; --on-host would run two real steps in host memory");
    }
    if (without_memory_only_) {
      return fail(
          ErrorCode::kUnsupported,
          reason +
              "; --batch auto does not run two real steps for each batch: give one with --batch");
    }
    std::fprintf(stderr,
                 "gpumemprof: estimate: cannot trace without memory: %s; running two steps in host "
                 "memory instead\n",
                 printable(reason).c_str());
    auto on_host = trace_on("cpu", batch);
    if (!on_host) return on_host;
    on_host->facts.assumptions.push_back("two real steps in host memory, because without memory: " +
                                         reason);
    return on_host;
  }

  void only_without_memory() override { without_memory_only_ = true; }

 private:
  Result<StepTrace> trace_on(const char* target, uint64_t batch) {
    auto folder = TraceFolder::make();
    if (!folder) return std::unexpected(folder.error());
    std::vector<std::string> words = arguments_.command;
    for (std::string& word : words) {
      for (size_t at; batch != 0 && (at = word.find(kBatchWord)) != word.npos;)
        word.replace(at, std::string_view(kBatchWord).size(), std::to_string(batch));
    }
    auto status = run_traced(words, {{"GPUMEMPROF_ESTIMATE", folder->path()},
                                     {"GPUMEMPROF_ESTIMATE_TARGET", target},
                                     {"GPUMEMPROF_ESTIMATE_BATCH", std::to_string(batch)},
                                     {"GPUMEMPROF_ESTIMATE_MULTIPROCESSORS", multiprocessors()}});
    if (!status) return std::unexpected(status.error());
    const size_t finals = folder->ending_in(".final").size();
    is_final_ = folder->ending_in(".begun").empty() ||
                (finals != 0 && folder->ending_in(".error").size() <= finals);
    return trace_in(*folder, *status);
  }

  /// Of the calibrated GPU; empty where it is not known.
  std::string multiprocessors() const {
    if (arguments_.calibration.empty()) return {};
    const auto found = read_calibration(arguments_.calibration);
    return found && found->multiprocessors ? std::to_string(found->multiprocessors) : "";
  }

  const EstimateArguments& arguments_;
  bool is_checked_ = false;
  bool is_final_ = false;  // it was not followed, or has no GPU: another try would run it again
  bool without_memory_only_ = false;
};

/// Existing trace files; with two of them any batch size can be predicted.
class FileSubject : public TraceSubject {
 public:
  explicit FileSubject(const EstimateArguments& arguments) : arguments_(arguments) {}

  Result<StepTrace> trace(uint64_t batch) override {
    auto first = read_step_trace(arguments_.traces[0]);
    if (!first || arguments_.traces.size() == 1) return first;
    auto second = read_step_trace(arguments_.traces[1]);
    if (!second) return second;
    if (first->facts.batch > second->facts.batch) std::swap(*first, *second);
    auto merged = ScaledTrace::merge(std::move(*first), *second);
    if (!merged) return std::unexpected(merged.error());
    return merged->at(batch);
  }

 private:
  const EstimateArguments& arguments_;
};

}  // namespace

std::unique_ptr<TraceSubject> subject_of(const EstimateArguments& arguments,
                                         const LoopVariant& variant) {
  if (!arguments.traces.empty()) return std::make_unique<FileSubject>(arguments);
  if (!arguments.model.empty()) return std::make_unique<ModelSubject>(arguments, variant);
  return std::make_unique<ScriptSubject>(arguments);
}

Result<StepTrace> LoopAtBatches::at(uint64_t batch) {
  if (!merged_ && !cannot_merge_) {
    if (auto done = merge(); !done) return std::unexpected(done.error());
  }
  if (!merged_) return subject_.trace(batch);
  StepTrace trace = merged_->at(batch);
  trace.facts.assumptions.push_back("sizes scale with the batch as they do from " +
                                    std::to_string(kLowBatch) + " to " +
                                    std::to_string(kHighBatch));
  return trace;
}

Status LoopAtBatches::merge() {
  auto low = subject_.trace(kLowBatch);
  if (!low) return std::unexpected(low.error());
  auto high = subject_.trace(kHighBatch);
  if (!high) return std::unexpected(high.error());
  auto merged = ScaledTrace::merge(std::move(*low), *high);
  if (merged) {
    merged_.emplace(std::move(*merged));
  } else {
    cannot_merge_ = true;
    subject_.only_without_memory();
  }
  return {};
}

}  // namespace gpumemprof
