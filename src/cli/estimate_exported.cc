#include "cli/estimate.h"

#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/size.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/python_program.h"
#include "cli/trace_child.h"
#include "readers/onnx_model.h"
#include "readers/pte_program.h"
#include "report/estimate_report.h"

namespace gpumemprof {
namespace {

constexpr size_t kMostAnswerBytes = 4 << 20;
constexpr uint64_t kMostSize = uint64_t{1} << 40;

Result<std::map<std::string, uint64_t>> sizes_of(const std::vector<std::string>& texts) {
  std::map<std::string, uint64_t> sizes;
  for (const std::string& text : texts) {
    const size_t equals = text.rfind('=');
    uint64_t size = 0;
    const char* end = text.data() + text.size();
    if (equals == text.npos || equals == 0 ||
        std::from_chars(text.data() + equals + 1, end, size).ptr != end || size == 0 ||
        size > kMostSize) {
      return fail(ErrorCode::kUsage, "--dim takes NAME=N, a number above 0");
    }
    sizes[text.substr(0, equals)] = size;
  }
  return sizes;
}

/// Runs the model in a process of its own, recorded where `is_recorded`. Errors: kUnsupported with
/// the reason where it could not be run.
Status measure(const nlohmann::json& job, bool is_recorded, ExportedAnswer* answer) {
  auto folder = TraceFolder::make();
  if (!folder) return std::unexpected(folder.error());
  std::vector<std::string> words;
  if (is_recorded)
    words = {own_program(), "run", "--quiet", "--output", folder->path() + "/recording", "--"};
  const std::string text = job.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  words.insert(words.end(),
               {active_python(), "-m", "gpumemprof._children.exported", folder->path(), text});
  auto status = run_traced(words, {{"GPUMEMPROF_ESTIMATE", ""}}, TraceStreams::kNone);
  if (!status) return std::unexpected(status.error());
  auto found = read_small_file(folder->path() + "/answer.json", kMostAnswerBytes);
  if (found && !found->empty()) return add_measured(*found, answer);
  std::string reason = folder->reason();
  if (reason.empty()) {
    reason =
        *status == 0 || WIFEXITED(*status)
            ? "could not start the process that runs it in " + active_python() +
                  ": install gpumemprof there, or set GPUMEMPROF_PYTHON to the Python to use"
            : "the process that ran it was ended by signal " + std::to_string(WTERMSIG(*status));
  }
  return fail(ErrorCode::kUnsupported, reason);
}

Status answer_onnx(const std::string& path, uint64_t batch,
                   const std::map<std::string, uint64_t>& sizes, ExportedAnswer* answer) {
  auto file = open_file(path, FileMode::kRead);
  if (!file) return std::unexpected(file.error());
  auto model = read_onnx_model(**file);
  if (!model) return std::unexpected(model.error());
  auto shapes = resolve_onnx_inputs(*model, batch, sizes);
  if (!shapes) return std::unexpected(shapes.error());
  std::string types;
  for (const auto& [type, bytes] : model->weight_bytes_by_type) {
    types += (types.empty() ? "" : ", ") + format_bytes(bytes) + " of " + type;
  }
  answer->figures.push_back({"weights", model->weight_bytes, false,
                             std::to_string(model->weight_count) +
                                 " constants of the file by their shapes" +
                                 (types.empty() ? "" : ": " + types)});
  uint64_t input_bytes = 0;
  nlohmann::json inputs = nlohmann::json::array();
  for (const OnnxShape& one : *shapes) {
    input_bytes += one.size_bytes;
    inputs.push_back({{"name", one.name},
                      {"element_type", one.element_type},
                      {"shape", one.sizes},
                      {"bytes", one.size_bytes}});
    answer->inputs.push_back({one.name, one.type, one.sizes});
  }
  answer->figures.push_back({"inputs", input_bytes, false, "their shapes"});
  const nlohmann::json job = {{"kind", "onnx"},
                              {"path", std::filesystem::absolute(path).string()},
                              {"inputs", std::move(inputs)},
                              {"outputs", model->outputs}};
  if (auto done = measure(job, false, answer); !done) return done;
  answer->notes.emplace_back(
      "the runtime may keep a second copy of the weights, in the layout of its kernels; the arena "
      "then includes it after loading");
  answer->notes.emplace_back(
      "inputs were zeros: if shapes depend on values, other inputs may need more");
  return {};
}

Status answer_pte(const std::string& path, ExportedAnswer* answer) {
  auto file = open_file(path, FileMode::kRead);
  if (!file) return std::unexpected(file.error());
  auto program = read_pte_program(**file);
  if (!program) return std::unexpected(program.error());
  const PteMethod* method = &program->methods[0];
  for (const PteMethod& one : program->methods) {
    if (one.name == "forward") method = &one;
  }
  for (const PteMethod& one : program->methods) {
    if (&one == method) continue;
    answer->notes.push_back("the method " + one.name +
                            " has another plan: " + format_bytes(one.total_planned_bytes()));
  }
  answer->figures.push_back(
      {"constants", program->constant_bytes, false, "segments and inline data of the program"});
  answer->figures.push_back(
      {"planned", method->total_planned_bytes(), false,
       "buffers of the memory plan of " + method->name + ", including planned inputs and outputs"});
  for (const std::string& delegate : method->delegates)
    answer->unknown.push_back("what the delegate " + delegate +
                              " allocates itself is not in the plan");
  const nlohmann::json job = {{"kind", "pte"},
                              {"path", std::filesystem::absolute(path).string()},
                              {"method", method->name}};
  // The plan stands without it.
  if (auto done = measure(job, false, answer); !done)
    answer->unknown.push_back("what a run uses outside of the plan: " + done.error().message);
  return {};
}

Status answer_pt2(const std::string& path, const std::string& batch,
                  const std::map<std::string, uint64_t>& sizes, ExportedAnswer* answer) {
  auto file = open_file(path, FileMode::kRead);
  if (!file) return std::unexpected(file.error());
  const nlohmann::json job = {{"kind", "pt2"},
                              {"path", std::filesystem::absolute(path).string()},
                              {"batch", batch},
                              {"dims", nlohmann::json(sizes)}};
  if (auto done = measure(job, true, answer); !done) return done;
  answer->notes.emplace_back(
      "it was checked for code before loading: it has only operator names, sizes and tensors");
  return {};
}

Status check_target(const EstimateArguments& arguments) {
  const bool is_of_training = !arguments.optimizer.empty() || !arguments.precision.empty() ||
                              arguments.checkpointing || arguments.on_host ||
                              !arguments.settings.empty() || !arguments.prices.empty() ||
                              !arguments.device_constant.empty();
  if (is_of_training || !arguments.option_typed.empty()) {
    return fail(ErrorCode::kUsage,
                "--target takes only --batch, --dim, --capacity, --format and --output: an "
                "exported model is run as it is");
  }
  if (arguments.batch == "auto")
    return fail(ErrorCode::kUsage,
                "--batch auto does not work for an exported model: give a number");
  return {};
}

Result<ExportedAnswer> answer_exported(const EstimateArguments& arguments,
                                       const std::string& path) {
  if (auto fine = check_target(arguments); !fine) return std::unexpected(fine.error());
  auto sizes = sizes_of(arguments.dims);
  if (!sizes) return std::unexpected(sizes.error());
  ExportedAnswer answer;
  answer.subject = path;
  answer.target = arguments.target;
  const auto capacity = read_capacity(arguments.capacity);
  if (!capacity) return std::unexpected(capacity.error());
  answer.capacity_bytes = *capacity;
  const uint64_t batch = arguments.batch.empty() ? 0 : std::stoul(arguments.batch);
  const std::string suffix = std::filesystem::path(path).extension().string();
  Status done;
  if (suffix == ".onnx") {
    answer.kind = "onnx";
    done = answer_onnx(path, batch, *sizes, &answer);
  } else if (suffix == ".pte") {
    if (batch != 0 || !sizes->empty())
      return fail(
          ErrorCode::kUsage,
          "an ExecuTorch program has fixed sizes in its plan: --batch and --dim do not apply");
    answer.kind = "pte";
    done = answer_pte(path, &answer);
  } else if (suffix == ".pt2") {
    answer.kind = "pt2";
    done = answer_pt2(path, arguments.batch, *sizes, &answer);
  } else {
    return fail(ErrorCode::kUsage, "--target takes an exported model: .onnx, .pte or .pt2");
  }
  if (!done) return std::unexpected(done.error());
  set_need(&answer);
  if (answer.target == "mobile")
    answer.notes.emplace_back(
        "measured on this machine's processor: kernels of another one pack weights differently and "
        "use other scratch memory");
  return answer;
}

}  // namespace

int estimate_exported(const EstimateArguments& arguments, const std::string& model) {
  auto answer = answer_exported(arguments, model);
  if (!answer) {
    const bool is_usage = answer.error().code == ErrorCode::kUsage;
    return report_error(is_usage ? "estimate" : model, answer.error());
  }
  return write_output(arguments.format == "json"
                          ? exported_json(*answer)
                          : fitted_to_terminal(exported_text(*answer), arguments.output),
                      arguments.output, {model});
}

}  // namespace gpumemprof
