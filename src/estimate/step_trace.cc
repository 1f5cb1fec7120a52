#include "estimate/step_trace.h"

#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/file.h"

namespace gpumemprof {
namespace {

constexpr std::string_view kFirstLine = "gpumemprof-estimate 1";
constexpr size_t kMaxFileBytes = 1ull << 30;
constexpr size_t kMaxNameBytes = 4096;
constexpr size_t kMaxNames = 1u << 20;
constexpr uint64_t kMaxStorageBytes = 1ull << 50;
constexpr uint64_t kMaxLiveBytes = 1ull << 60;

/// Numbers and words of one line, separated by single spaces.
class LineFields {
 public:
  explicit LineFields(std::string_view rest) : rest_(rest) {}
  std::optional<std::string_view> word() {
    if (done_) return std::nullopt;
    const size_t end = rest_.find(' ');
    const std::string_view found = rest_.substr(0, end);
    done_ = end == std::string_view::npos;
    if (!done_) rest_.remove_prefix(end + 1);
    return found.empty() ? std::nullopt : std::optional(found);
  }
  std::optional<uint64_t> number(uint64_t below) {
    const auto text = word();
    uint64_t value = 0;
    if (!text) return std::nullopt;
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
    if (error != std::errc{} || end != text->data() + text->size() || value >= below)
      return std::nullopt;
    return value;
  }
  bool at_end() const { return done_; }

 private:
  std::string_view rest_;
  bool done_ = false;
};

std::optional<StorageKind> storage_kind(std::string_view letter) {
  constexpr std::string_view kLetters = "-pbgoi";
  if (letter.size() != 1 || kLetters.find(letter) == kLetters.npos) return std::nullopt;
  return static_cast<StorageKind>(kLetters.find(letter));
}

StepPhase phase_named(std::string_view name) {
  constexpr std::array<std::string_view, 5> kNames = {"setup", "input", "forward", "backward",
                                                      "optimizer"};
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<StepPhase>(i);
  }
  return StepPhase::kOther;
}

/// Each answers false where the fact is there and of another type.
bool take_text(const nlohmann::json& facts, const char* key, std::string* text) {
  const auto found = facts.find(key);
  if (found == facts.end()) return true;
  if (!found->is_string()) return false;
  *text = found->get<std::string>();
  return true;
}

bool take_texts(const nlohmann::json& facts, const char* key, std::vector<std::string>* texts) {
  const auto found = facts.find(key);
  if (found == facts.end()) return true;
  if (!found->is_array()) return false;
  for (const nlohmann::json& text : *found) {
    if (!text.is_string()) return false;
    texts->push_back(text.get<std::string>());
  }
  return true;
}

/// Where a key stands in a line of JSON.
size_t place_of(std::string_view line, const std::string& key) {
  const std::string quoted = '"' + key + '"';
  for (size_t at = line.find(quoted); at != line.npos; at = line.find(quoted, at + 1)) {
    const size_t next = line.find_first_not_of(" \t\r", at + quoted.size());
    if (next != line.npos && line[next] == ':') return at;
  }
  return 0;
}

class TraceFileParser {
 public:
  explicit TraceFileParser(std::string_view text) : text_(text) {}

  Result<StepTrace> parse() {
    if (next() != kFirstLine)
      return wrong("not a trace of this version: the first line is not \"" +
                   std::string(kFirstLine) + "\"");
    if (auto done = facts(); !done) return std::unexpected(done.error());
    while (at_ < text_.size()) {
      const std::string_view line = next();
      if (line.starts_with("e ")) return end(line);
      if (line.size() < 1 || (line.size() > 1 && line[1] != ' '))
        return wrong("a line that is not an event");
      auto done = event(line[0], line.substr(std::min<size_t>(2, line.size())));
      if (!done) return std::unexpected(done.error());
    }
    begin_ = text_.size();
    return wrong("the file ends early: its last line, which counts the events, is missing");
  }

 private:
  /// The next line, which ends with a newline; the rest of the text where none does.
  std::string_view next() {
    begin_ = at_;
    const size_t end = text_.find('\n', at_);
    const std::string_view line = text_.substr(at_, end == text_.npos ? text_.npos : end - at_);
    at_ = end == text_.npos ? text_.size() : end + 1;
    return line;
  }
  std::unexpected<Error> wrong(std::string what) const { return fail_at(begin_, std::move(what)); }

  Status facts() {
    const std::string_view line = next();
    const nlohmann::json facts = nlohmann::json::parse(line, nullptr, false);
    if (!facts.is_object()) return wrong("the second line is not a JSON object");
    LoopFacts& to = trace_.facts;
    const auto wrong_fact = [&](const char* key, const char* what) {
      return fail_at(begin_ + place_of(line, key), std::string(key) + ' ' + what);
    };
    if (const auto batch = facts.find("batch"); batch != facts.end()) {
      if (!batch->is_number_unsigned()) return wrong_fact("batch", "is not a number of samples");
      to.batch = batch->get<uint64_t>();
    }
    if (to.batch >= 1u << 30) return wrong_fact("batch", "is beyond anything that can be run");
    const std::pair<const char*, std::string*> texts[] = {
        {"subject", &to.subject}, {"optimizer", &to.optimizer}, {"precision", &to.precision},
        {"torch", &to.torch},     {"device", &to.device},       {"method", &to.method}};
    for (const auto& [key, text] : texts) {
      if (!take_text(facts, key, text)) return wrong_fact(key, "is not a string");
    }
    if (!take_texts(facts, "assumptions", &to.assumptions))
      return wrong_fact("assumptions", "is not a list of strings");
    if (!take_texts(facts, "unknown", &to.unknown))
      return wrong_fact("unknown", "is not a list of strings");
    if (const auto benchmark = facts.find("cudnn_benchmark"); benchmark != facts.end()) {
      if (!benchmark->is_boolean() && !benchmark->is_null())  // null: no convolution was asked for
        return wrong_fact("cudnn_benchmark", "is neither true nor false");
      to.cudnn_benchmark = *benchmark == true;
    }
    return {};
  }

  Status event(char tag, std::string_view rest) {
    switch (tag) {
      case 's':
        return name(rest);
      case 'a':
        return alloc(LineFields(rest));
      case 'f':
        return free(LineFields(rest));
      case 'c':
        return convolution(LineFields(rest));
      case 'm':
        return plain(TracedEvent::Kind::kProduct, rest);
      case 'x':
        return plain(TracedEvent::Kind::kEmptyCache, rest);
      case 'p':
        trace_.events.push_back({.kind = TracedEvent::Kind::kPhase, .phase = phase_named(rest)});
        return {};
      default:
        return wrong("a line that is not an event");
    }
  }

  Status name(std::string_view text) {
    if (text.size() > kMaxNameBytes || trace_.names.size() > kMaxNames)
      return wrong("too many or too long names");
    trace_.names.emplace_back(text);
    return {};
  }

  Status plain(TracedEvent::Kind kind, std::string_view rest) {
    if (!rest.empty()) return wrong("too many fields for the event");
    trace_.events.push_back({.kind = kind});
    return {};
  }

  Status alloc(LineFields fields) {
    const auto id = fields.number(trace_.storages + 1ull);
    const auto bytes = fields.number(kMaxStorageBytes);
    const auto stream = fields.number(1u << 16);
    const auto letter = fields.word();
    const auto kind = letter ? storage_kind(*letter) : std::nullopt;
    const auto module = fields.number(trace_.names.size());
    if (!id || !bytes || !stream || !kind || !module || !fields.at_end())
      return wrong("not an allocation: a NUMBER BYTES STREAM KIND MODULE");
    if (*id != trace_.storages) return wrong("storages are not numbered in order of allocation");
    live_bytes_ += *bytes;
    if (live_bytes_ >= kMaxLiveBytes) return wrong("more is live than any device can have");
    live_.push_back(*bytes);
    trace_.events.push_back({.kind = TracedEvent::Kind::kAlloc,
                             .storage_kind = *kind,
                             .stream = static_cast<uint16_t>(*stream),
                             .index = trace_.storages,
                             .module = static_cast<uint32_t>(*module),
                             .bytes = *bytes});
    ++trace_.storages;
    return {};
  }

  Status free(LineFields fields) {
    const auto id = fields.number(trace_.storages);
    if (!id || !fields.at_end()) return wrong("a free of a storage that was never allocated");
    if (live_[*id] == kDropped) return wrong("the second free of a storage");
    live_bytes_ -= live_[*id];
    live_[*id] = kDropped;
    trace_.events.push_back(
        {.kind = TracedEvent::Kind::kFree, .index = static_cast<uint32_t>(*id)});
    return {};
  }

  Status convolution(LineFields fields) {
    constexpr std::string_view kParts = "fiw";
    const auto letter = fields.word();
    const size_t part = letter && letter->size() == 1 ? kParts.find(*letter) : kParts.npos;
    std::array<uint64_t, 10> numbers{};
    for (uint64_t& number : numbers) {
      const auto value = fields.number(kMaxStorageBytes);
      if (!value) return wrong("not a convolution: c PART and ten numbers");
      number = *value;
    }
    if (part == kParts.npos || !fields.at_end() || numbers[0] >= 1u << 30)
      return wrong("not a convolution: c PART and ten numbers");
    trace_.events.push_back({.kind = TracedEvent::Kind::kConvolution,
                             .index = static_cast<uint32_t>(trace_.convolutions.size())});
    trace_.convolutions.push_back({.part = static_cast<ConvolutionPart>(part),
                                   .is_transposed = numbers[9] != 0,
                                   .shape = static_cast<uint32_t>(numbers[0]),
                                   .input_bytes = numbers[1],
                                   .output_bytes = numbers[2],
                                   .weight_bytes = numbers[3],
                                   .kernel_elements = numbers[4],
                                   .groups = numbers[6],
                                   .in_channels = numbers[7],
                                   .out_channels = numbers[8]});
    return {};
  }

  Result<StepTrace> end(std::string_view line) {
    LineFields fields(line.substr(2));
    const auto count = fields.number(~0ull);
    if (!count || !fields.at_end() || *count != trace_.events.size())
      return wrong("the last line does not match the number of events");
    if (at_ != text_.size()) return wrong("extra text after the last line");
    return std::move(trace_);
  }

  static constexpr uint64_t kDropped = ~0ull;
  std::string_view text_;
  size_t at_ = 0, begin_ = 0;
  std::vector<uint64_t> live_;  // bytes of each storage
  uint64_t live_bytes_ = 0;
  StepTrace trace_;
};

}  // namespace

Result<StepTrace> parse_step_trace(std::string_view text) { return TraceFileParser(text).parse(); }

Result<StepTrace> read_step_trace(const std::string& path) {
  auto text = read_small_file(path, kMaxFileBytes);
  if (!text) return std::unexpected(text.error());
  return parse_step_trace(*text);
}

}  // namespace gpumemprof
