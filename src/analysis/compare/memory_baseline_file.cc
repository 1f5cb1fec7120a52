#include "analysis/compare/memory_baseline_file.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/in_quotes.h"
#include "base/json_fields.h"

namespace gpumemprof {
namespace {

using AnyJson = nlohmann::json;
using OrderedRow = nlohmann::ordered_json;

constexpr std::string_view kBaseline = "gpumemprof.memory-baseline/";
constexpr std::string_view kMeasurement = "gpumemprof.memory-measurement/";
constexpr uint64_t kMostPeakBytes = uint64_t{1} << 56;
constexpr size_t kMostSubjects = 100'000, kMostKinds = 64, kMostFileLines = 1000;

std::string json_row(const OrderedRow& json) {
  return json.dump(-1, ' ', false, OrderedRow::error_handler_t::replace);
}

std::string lines_text(const std::vector<PeakLine>& lines, const std::string& indent) {
  std::string text = "[";
  for (const PeakLine& line : lines) {
    text += (text.size() > 1 ? ",\n" : "\n") + indent + "  " +
            json_row({{"bytes", line.bytes},
                      {"file", line.file},
                      {"line", line.line},
                      {"function", line.function},
                      {"source", line.source}});
  }
  return text + (text.size() > 1 ? '\n' + indent : "") + ']';
}

void append_field(std::string* text, const std::string& indent, const char* key,
                  const std::string& value) {
  *text += (text->back() == '{' ? "\n" : ",\n") + indent + json_row(key) + ": " + value;
}

std::string memory_text(const PeakMemory& memory, const std::string& indent, bool is_measured) {
  const std::string inner = indent + "  ";
  std::string text = "{";
  append_field(&text, inner, "peak_bytes", std::to_string(memory.peak_bytes));
  append_field(&text, inner, "basis", json_row(memory.basis));
  if (is_measured) {
    append_field(&text, inner, "is_exact", memory.is_exact ? "true" : "false");
    if (!memory.lost.empty()) append_field(&text, inner, "lost", json_row(memory.lost));
    if (memory.reserved_bytes)
      append_field(&text, inner, "peak_reserved_bytes", std::to_string(*memory.reserved_bytes));
    append_field(&text, inner, "before_bytes", std::to_string(memory.before_bytes));
    append_field(&text, inner, "end_bytes", std::to_string(memory.end_bytes));
    append_field(&text, inner, "lines_at_end", lines_text(memory.lines_at_end, inner));
  }
  append_field(&text, inner, "lines", lines_text(memory.lines, inner));
  append_field(&text, inner, "other_lines_bytes", std::to_string(memory.other_bytes));
  return text + '\n' + indent + '}';
}

std::string subject_text(const PeakSubject& subject, const std::string& indent, bool is_measured) {
  std::string text = "{";
  for (const PeakMemory& memory : subject.memories)
    append_field(&text, indent + "  ", memory.kind.c_str(),
                 memory_text(memory, indent + "  ", is_measured));
  return text + (text.size() > 1 ? '\n' + indent : "") + '}';
}

std::string subjects_text(std::vector<PeakSubject> subjects, bool is_measured) {
  std::ranges::sort(subjects, {}, &PeakSubject::name);
  std::string program = "{}", tests = "{";
  for (const PeakSubject& subject : subjects) {
    if (subject.name.empty())
      program = subject_text(subject, "  ", is_measured);
    else
      append_field(&tests, "    ", subject.name.c_str(),
                   subject_text(subject, "    ", is_measured));
  }
  tests += tests.size() > 1 ? "\n  }" : "}";
  return "  \"program\": " + program + ",\n  \"tests\": " + tests + '\n';
}

std::unexpected<Error> wrong_field(const std::string& what) {
  return fail(ErrorCode::kBadInput, what);
}

class SubjectReader {
 public:
  Result<std::vector<PeakSubject>> subjects(const AnyJson& root) {
    const AnyJson* program = field_of(root, "program");
    if (program) {
      if (auto done = subject("", *program); !done) return std::unexpected(done.error());
    }
    if (const AnyJson* tests = field_of(root, "tests")) {
      if (!tests->is_object() || tests->size() > kMostSubjects)
        return wrong_field("its tests are not an object of at most " + std::to_string(kMostSubjects));
      for (const auto& [name, value] : tests->items()) {
        if (name.empty() || name.size() > kMostFieldBytes)
          return wrong_field("a test of it has no name");
        if (auto done = subject(name, value); !done) return std::unexpected(done.error());
      }
    }
    return std::move(subjects_);
  }

 private:
  Status subject(const std::string& name, const AnyJson& json) {
    const std::string called = name.empty() ? "its program" : "its test " + in_quotes(name, 80);
    if (!json.is_object() || json.size() > kMostKinds)
      return wrong_field(called + " is not an object of devices");
    PeakSubject out{.name = name};
    for (const auto& [kind, value] : json.items()) {
      auto read = memory(kind, value);
      if (!read) return wrong_field(called + ": " + in_quotes(kind) + ": " + read.error().message);
      out.memories.push_back(std::move(*read));
    }
    subjects_.push_back(std::move(out));
    return {};
  }

  static Result<PeakMemory> memory(const std::string& kind, const AnyJson& json) {
    PeakMemory out{.kind = kind, .basis = text_field(json, "basis")};
    const auto peak = size_field(json, "peak_bytes");
    if (!peak) return wrong_field("its peak_bytes is not a number of bytes");
    out.peak_bytes = *peak;
    out.reserved_bytes = size_field(json, "peak_reserved_bytes");
    const AnyJson* exact = field_of(json, "is_exact");
    out.is_exact = !exact || !exact->is_boolean() || exact->get<bool>();
    out.lost = text_field(json, "lost");
    out.before_bytes = size_field(json, "before_bytes").value_or(0);
    out.end_bytes = size_field(json, "end_bytes").value_or(0);
    out.other_bytes = size_field(json, "other_lines_bytes").value_or(0);
    for (const auto& [key, into] :
         {std::pair{"lines", &out.lines}, std::pair{"lines_at_end", &out.lines_at_end}}) {
      if (auto done = lines(json, key, into); !done) return std::unexpected(done.error());
    }
    return out;
  }

  static std::optional<uint64_t> size_field(const AnyJson& json, const char* key) {
    const auto value = number_field(json, key);
    return value && *value <= kMostPeakBytes ? value : std::nullopt;
  }

  static Status lines(const AnyJson& json, const char* key, std::vector<PeakLine>* out) {
    const AnyJson* list = field_of(json, key);
    if (!list) return {};
    if (!list->is_array() || list->size() > kMostFileLines)
      return wrong_field(std::string("its ") + key + " are not a list of at most " +
                         std::to_string(kMostFileLines));
    for (const AnyJson& one : *list) {
      const auto size = size_field(one, "bytes");
      const auto line = number_field(one, "line");
      if (!size || !line || *line > UINT32_MAX)
        return wrong_field(std::string("one of its ") + key + " has no bytes or no number");
      out->push_back({.file = text_field(one, "file"),
                      .line = static_cast<uint32_t>(*line),
                      .function = text_field(one, "function"),
                      .source = text_field(one, "source"),
                      .bytes = *size});
    }
    return {};
  }

  std::vector<PeakSubject> subjects_;
};

/// The object, where it is one of ours.
Result<AnyJson> parse_gate_file(std::string_view text, std::string_view schema, const char* what) {
  // Deeper than any of ours: not kept.
  const auto is_near = [](int depth, AnyJson::parse_event_t, AnyJson&) { return depth < 16; };
  AnyJson root;
  try {
    root = AnyJson::parse(text, is_near);
  } catch (const AnyJson::parse_error& error) {
    return fail_at(error.byte, "is not JSON");
  } catch (const AnyJson::out_of_range&) {  // 1e400: the parser says no place
    return wrong_field("has a number that is too large");
  }
  const std::string said = text_field(root, "schema");
  if (!said.starts_with(schema))
    return wrong_field(std::string("is no ") + what + " of gpumemprof gate");
  if (said != std::string(schema) + '1')
    return fail(ErrorCode::kUnsupported, "was written by a later version of gpumemprof");
  return root;
}

}  // namespace

std::string baseline_json(const MemoryBaseline& baseline) {
  std::string text = "{\n  \"schema\": \"" + std::string(kBaseline) +
                     "1\",\n  \"gpumemprof\": " + json_row(baseline.version) +
                     ",\n  \"reasons\": [";
  const size_t first = baseline.reasons.size() - std::min(baseline.reasons.size(), kMostReasons);
  for (size_t i = first; i < baseline.reasons.size(); ++i) {
    text += (i == first ? "\n    " : ",\n    ") +
            json_row({{"date", baseline.reasons[i].date}, {"reason", baseline.reasons[i].text}});
  }
  return text + (baseline.reasons.empty() ? "],\n" : "\n  ],\n") +
         subjects_text(baseline.subjects, false) + "}\n";
}

Result<MemoryBaseline> parse_baseline(std::string_view text) {
  const auto root = parse_gate_file(text, kBaseline, "baseline");
  if (!root) return std::unexpected(root.error());
  MemoryBaseline out{.version = text_field(*root, "gpumemprof")};
  if (const AnyJson* reasons = list_field(*root, "reasons")) {
    for (const AnyJson& one : *reasons) {
      if (out.reasons.size() < kMostReasons)
        out.reasons.push_back({text_field(one, "date"), text_field(one, "reason")});
    }
  }
  auto subjects = SubjectReader().subjects(*root);
  if (!subjects) return std::unexpected(subjects.error());
  out.subjects = std::move(*subjects);
  return out;
}

std::string measurement_json(const std::vector<PeakSubject>& subjects, const std::string& version) {
  return "{\n  \"schema\": \"" + std::string(kMeasurement) +
         "1\",\n  \"gpumemprof\": " + json_row(version) + ",\n" + subjects_text(subjects, true) +
         "}\n";
}

Result<std::vector<PeakSubject>> parse_measurement(std::string_view text) {
  const auto root = parse_gate_file(text, kMeasurement, "measurement");
  if (!root) return std::unexpected(root.error());
  return SubjectReader().subjects(*root);
}

}  // namespace gpumemprof
