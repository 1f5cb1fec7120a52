#include "report/estimate_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/size.h"
#include "report/json/parts.h"
#include "report/words.h"

namespace gpumemprof {
namespace {

using Json = nlohmann::ordered_json;

struct FigureWords {
  const char* name;
  const char* words;
};
constexpr FigureWords kWords[] = {
    {"weights", "weights"},
    {"constants", "weights, and data for delegates"},
    {"inputs", "inputs"},
    {"planned", "memory plan of the method"},
    {"arena_loaded", "arena: in use once loaded"},
    {"arena_peak", "arena: peak"},
    {"arena_reserved", "arena: reserved from the system"},
    {"run_peak", "peak of a run, without weights and inputs"},
    {"resident_rise", "rise of the process's resident memory"},
};

const char* words_for(const std::string& name) {
  const auto found =
      std::ranges::find_if(kWords, [&](const auto& one) { return one.name == name; });
  return found == std::end(kWords) ? "other" : found->words;
}

const char* basis_of(const ExportedFigure& figure) {
  return figure.is_measured ? "measured" : "calculated";
}

std::string shape_text(const std::vector<uint64_t>& sizes) {
  std::string text;
  for (const uint64_t size : sizes) text += (text.empty() ? "" : " x ") + std::to_string(size);
  return text.empty() ? "one number" : text;
}

void add_list(const char* title, const std::vector<std::string>& lines, std::string* out) {
  if (lines.empty()) return;
  *out += fmt::format("\n{}\n", title);
  for (const std::string& line : lines) *out += "  " + printable(line) + '\n';
}

}  // namespace

std::string exported_text(const ExportedAnswer& answer) {
  std::string out = fmt::format("{}: an exported model ({}) on a {}\n", printable(answer.subject),
                                answer.kind, answer.target == "cpu" ? "CPU" : "mobile processor");
  out += answer.runtime.empty()
             ? "It was not run.\n"
             : fmt::format("Run on the CPU of this machine by {}.\n", printable(answer.runtime));
  for (const ExportedInput& input : answer.inputs) {
    out += fmt::format("Input {}: {}, {}\n", printable(input.name), printable(input.type),
                       shape_text(input.sizes));
  }
  out += '\n';
  for (const ExportedFigure& figure : answer.figures) {
    out += fmt::format("  {:>9}  {:<10}  {}\n", format_bytes(figure.bytes), basis_of(figure),
                       words_for(figure.name));
  }
  if (answer.need) {
    out += answer.need->low == answer.need->high
               ? fmt::format("\nNeeds {}.\n", format_bytes(answer.need->low))
               : fmt::format("\nNeeds at least {}; {} were measured here.\n",
                             format_bytes(answer.need->low), format_bytes(answer.need->high));
  }
  if (answer.capacity_bytes) {
    out += fmt::format("In {}: {}.\n", format_bytes(*answer.capacity_bytes),
                       verdict_name(fits(answer.need, *answer.capacity_bytes)));
  }
  std::vector<std::string> sources;
  for (const ExportedFigure& figure : answer.figures) {
    if (!figure.how.empty())
      sources.push_back(fmt::format("{}: {}", words_for(figure.name), figure.how));
  }
  add_list("How:", sources, &out);
  add_list("To know:", answer.notes, &out);
  add_list("Not known:", answer.unknown, &out);
  return out;
}

std::string exported_json(const ExportedAnswer& answer) {
  Json out = {{"schema", "gpumemprof.estimate-exported/1"},
              {"subject", answer.subject},
              {"target", answer.target},
              {"kind", answer.kind}};
  out["runtime"] = text_or_null(answer.runtime);
  out["inputs"] = Json::array();
  for (const ExportedInput& input : answer.inputs) {
    out["inputs"].push_back({{"name", input.name}, {"type", input.type}, {"shape", input.sizes}});
  }
  out["figures"] = Json::array();
  for (const ExportedFigure& figure : answer.figures) {
    out["figures"].push_back({{"name", figure.name},
                              {"bytes", figure.bytes},
                              {"basis", basis_of(figure)},
                              {"how", figure.how}});
  }
  out["need"] = nullptr;
  if (answer.need)
    out["need"] = {{"low_bytes", answer.need->low}, {"high_bytes", answer.need->high}};
  out["capacity"] = nullptr;
  if (answer.capacity_bytes) {
    out["capacity"] = {{"usable_bytes", *answer.capacity_bytes},
                       {"verdict", verdict_name(fits(answer.need, *answer.capacity_bytes))}};
  }
  out["notes"] = answer.notes;
  out["unknown"] = answer.unknown;
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace gpumemprof
