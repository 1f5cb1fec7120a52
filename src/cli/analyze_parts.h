// The half of `analyze` that reads samples, and what both halves share.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "analysis/advice/tensorflow_advice.h"
#include "analysis/analysis.h"
#include "cli/options.h"

namespace gpumemprof {

struct AnalyzeArguments {
  std::vector<std::string> paths;
  std::string format;
  std::string output;
  std::string color = "auto";
  std::string plot_folder = "plots";
  double sensitivity = 0.05;
  std::string fail_on;   ///< conditions, as parse_fail_conditions() takes them
  std::string capacity;  ///< a size, for when a leak reaches it
  std::optional<uint64_t> capacity_bytes;  ///< as read from it
  CostArguments prices;
  std::optional<CostOptions> cost;  ///< as read from them
  bool full_stacks = false;
  bool no_seal = false;
  bool anonymize = false;
  bool no_source = false;
  bool visualization = false;
  std::string report_path;    ///< also write the analysis and the advice there; tfmemprof's
  bool detect_leaks = false;  ///< tfmemprof's; they always are
  bool optimize = false;      ///< also say TensorFlow's advice; tfmemprof's
};

/// What --optimize and --report add to a finished analysis: prints the advice where the output is
/// text on standard output, and writes the report. `text` is the analysis as text without colour,
/// `otherwise` as of advice_text(). The exit code.
int add_advice(const AnalyzeArguments& arguments, const std::string& path, const std::string& text,
               const AdviceReport& advice, const std::string& otherwise = "");

/// The exit code.
int analyze_telemetry_file(const AnalyzeArguments& arguments);
int wrong_sensitivity();

/// Has `page` written into --plot-dir, and names it on stdout (stderr where the report goes to
/// stdout as JSON). The exit code.
int write_visualization(const AnalyzeArguments& arguments,
                        const std::function<int(const std::string&)>& page);

/// The part of `analyze` that reads what an out-of-memory error left.
/// Prints the dump at the one path, whose kind is kOomDump. Returns the exit code.
int analyze_oom_dump(const AnalyzeArguments& arguments);

}  // namespace gpumemprof
