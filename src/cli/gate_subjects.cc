#include "cli/gate_subjects.h"

#include <map>

#include "analysis/analyze.h"
#include "analysis/compare/memory_baseline_file.h"
#include "analysis/compare/peak_memories.h"
#include "base/file.h"
#include "base/folder.h"
#include "cli/input.h"
#include "cli/progress.h"
#include "report/describe/facts.h"
#include "report/describe/source_text.h"

namespace gpumemprof {
namespace {

Result<PeakSubject> measured_program(const RunOutcome& outcome) {
  PeakSubject program;
  if (outcome.recorded.empty()) return program;
  auto input = open_input(outcome.recorded);
  if (!input) return std::unexpected(input.error());
  Progress progress("looking for the peak");
  AnalysisOptions options;
  options.depth = AnalysisDepth::kPeak;
  options.on_progress = [&](double share) { progress.update(share); };
  const auto analyzed = analyze(*input, options);
  if (!analyzed) return std::unexpected(analyzed.error());
  program.memories =
      peak_memories(analyzed->analysis, analyzed->tables(), working_folder(), line_text());
  for (PeakMemory& memory : program.memories) {
    if (!memory.is_exact) memory.lost = lost_words(analyzed->analysis.loss);
  }
  return program;
}

}  // namespace

Result<std::vector<PeakSubject>> gate_subjects(const RunOutcome& outcome,
                                               const std::string& folder) {
  std::vector<PeakSubject> out;
  auto program = measured_program(outcome);
  if (!program) return std::unexpected(program.error());
  if (!program->memories.empty()) out.push_back(std::move(*program));
  std::map<std::string, PeakSubject> tests;  // of one that ran twice the later counts
  const auto is_measurement = [](std::string_view name) { return name.ends_with(".json"); };
  for (const std::string& name : names_in(folder, is_measurement)) {
    const std::string path = folder + '/' + name;
    const auto text = read_small_file(path, kMostBaselineBytes);
    auto read = text ? parse_measurement(*text) : std::unexpected(text.error());
    if (!read) return fail(read.error().code, path + ": " + read.error().message);
    for (PeakSubject& subject : *read) {
      if (!subject.name.empty()) tests[subject.name] = std::move(subject);
    }
  }
  for (auto& [name, subject] : tests) out.push_back(std::move(subject));
  return out;
}

}  // namespace gpumemprof
