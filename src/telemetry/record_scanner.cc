#include "telemetry/record_scanner.h"

namespace gpumemprof {
namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

/// Walks over JSON; strings are passed over whole.
struct Walk {
  int depth = 0;
  bool in_string = false, escaped = false;

  void step(char c) {
    if (in_string) {
      if (escaped)
        escaped = false;
      else if (c == '\\')
        escaped = true;
      else if (c == '"')
        in_string = false;
      return;
    }
    if (c == '"') in_string = true;
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
  }
};

}  // namespace

bool is_nested_too_deep(std::string_view json) {
  Walk walk;
  for (char c : json) {
    walk.step(c);
    if (walk.depth > kMaxJsonDepth) return true;
  }
  return false;
}

Result<std::optional<size_t>> json_object_length(std::string_view text, size_t at, size_t most) {
  Walk walk;
  for (size_t i = at; i < text.size(); ++i) {
    walk.step(text[i]);
    if (walk.depth > kMaxJsonDepth) return fail_at(i, "is nested too deeply for telemetry");
    if (walk.depth == 0) return i + 1 - at;
    if (i - at >= most) {
      return fail_at(at, "a record larger than " + std::to_string(most) + " bytes");
    }
  }
  return std::nullopt;
}

void RecordScanner::skip_spaces() {
  while (at_ < text_.size() && is_space(text_[at_])) ++at_;
}

Result<std::optional<RecordScanner::Record>> RecordScanner::next() {
  using None = std::optional<Record>;
  skip_spaces();
  if (in_array_ && at_ < text_.size() && text_[at_] == ']') {
    closed_ = true;
    return None{};
  }
  if (in_array_ && any_ && at_ < text_.size()) {
    if (text_[at_] != ',') return fail_at(at_, "expected ',' or ']' between records");
    ++at_;
    skip_spaces();
  }
  if (at_ >= text_.size()) return None{};
  if (text_[at_] != '{') return fail_at(at_, "expected a record, which begins with '{'");
  auto length = json_object_length(text_, at_, kMaxRecordBytes);
  if (!length) return std::unexpected(length.error());
  if (!*length) {
    truncated_bytes_ = text_.size() - at_;
    return None{};
  }
  const Record record{text_.substr(at_, **length), at_};
  at_ += **length;
  any_ = true;
  return record;
}

}  // namespace gpumemprof
