#include <yaml.h>

#include <charconv>
#include <cmath>

#include "estimate/config_values.h"

namespace gpumemprof {
namespace {

/// libyaml's events, one after the other. Aliases are refused: they are how a small file becomes a
/// large one.
class YamlEvents {
 public:
  explicit YamlEvents(std::string_view text) {
    is_open_ = yaml_parser_initialize(&parser_) == 1;
    if (is_open_) {
      yaml_parser_set_input_string(&parser_, reinterpret_cast<const unsigned char*>(text.data()),
                                   text.size());
    }
  }
  YamlEvents(const YamlEvents&) = delete;
  YamlEvents& operator=(const YamlEvents&) = delete;
  ~YamlEvents() {
    if (has_event_) yaml_event_delete(&event_);
    if (is_open_) yaml_parser_delete(&parser_);
  }

  /// False at the end or where the text is no YAML.
  bool next() {
    if (!is_open_) return false;
    if (has_event_) yaml_event_delete(&event_);
    has_event_ = yaml_parser_parse(&parser_, &event_) == 1;
    return has_event_ && event_.type != YAML_STREAM_END_EVENT;
  }
  const yaml_event_t& event() const { return event_; }
  bool has_failed() const { return !is_open_ || !has_event_; }
  /// libyaml counts characters; this is the byte.
  uint64_t offset(std::string_view text) const {
    uint64_t characters = has_event_ ? event_.start_mark.index : parser_.problem_mark.index;
    size_t byte = 0;
    for (; byte < text.size(); ++byte) {
      const bool begins = (static_cast<unsigned char>(text[byte]) & 0xc0) != 0x80;
      if (begins && characters-- == 0) break;
    }
    return byte;
  }

 private:
  yaml_parser_t parser_;
  yaml_event_t event_;
  bool is_open_ = false, has_event_ = false;
};

ConfigValue plain_value(const yaml_event_t& event) {
  std::string text(reinterpret_cast<const char*>(event.data.scalar.value),
                   event.data.scalar.length);
  if (event.data.scalar.style != YAML_PLAIN_SCALAR_STYLE) return text;
  if (text.empty() || text == "null" || text == "~" || text == "None") return std::monostate();
  if (text == "true" || text == "True") return true;
  if (text == "false" || text == "False") return false;
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc() && stop == end && std::isfinite(number)) return number;
  return text;
}

class MappingReader {
 public:
  Result<ConfigValues> read(std::string_view text) {
    YamlEvents events(text);
    while (events.next()) {
      if (!take(events.event())) return fail_at(events.offset(text), problem_);
    }
    if (events.has_failed()) return fail_at(events.offset(text), "is neither JSON nor YAML");
    if (!saw_mapping_)
      return fail_at(0, "is not a configuration: neither a JSON object nor a YAML mapping");
    return std::move(saw_arguments_ ? arguments_ : top_);
  }

 private:
  static constexpr int kMaxDepth = 64;

  bool take(const yaml_event_t& event) {
    switch (event.type) {
      case YAML_ALIAS_EVENT:
        problem_ = "aliases are not supported";
        return false;
      case YAML_MAPPING_START_EVENT:
        saw_mapping_ = saw_mapping_ || depth_ == 0;
        return enter(true);
      case YAML_SEQUENCE_START_EVENT:
        return enter(false);
      case YAML_MAPPING_END_EVENT:
        return leave();
      case YAML_SEQUENCE_END_EVENT:
        if (depth_ == level() + 1 && is_numbers_) target()->set(key_, list_);
        if (depth_ == level() + 1 && is_texts_ && !texts_.empty()) target()->set(key_, texts_);
        return leave();
      case YAML_SCALAR_EVENT:
        return scalar(event);
      default:
        return true;
    }
  }

  /// Flags of Megatron's own test files lie under MODEL_ARGS; elsewhere they are the whole file.
  ConfigValues* target() { return within_arguments_ ? &arguments_ : &top_; }
  int level() const { return 1 + within_arguments_; }

  bool enter(bool mapping) {
    if (++depth_ > kMaxDepth) {
      problem_ = "is nested too deeply";
      return false;
    }
    if (depth_ == 2 && mapping && has_key_ && key_ == "MODEL_ARGS" && !within_arguments_) {
      within_arguments_ = saw_arguments_ = true;
    } else if (depth_ == level() + 1) {
      list_.clear();
      texts_.clear();
      is_numbers_ = is_texts_ = !mapping;
    } else {
      is_numbers_ = is_texts_ = false;
    }
    has_key_ = false;
    return true;
  }

  bool leave() {
    if (within_arguments_ && depth_ == 2) within_arguments_ = false;
    --depth_;
    has_key_ = false;
    return true;
  }

  bool scalar(const yaml_event_t& event) {
    if (depth_ == level()) {
      if (!has_key_) {
        key_.assign(reinterpret_cast<const char*>(event.data.scalar.value),
                    event.data.scalar.length);
      } else {
        target()->set(key_, plain_value(event));
      }
      has_key_ = !has_key_;
    } else if (depth_ == level() + 1 && (is_numbers_ || is_texts_)) {
      const ConfigValue value = plain_value(event);
      const double* number = std::get_if<double>(&value);
      is_numbers_ = is_numbers_ && number != nullptr && list_.size() < 65536;
      if (is_numbers_) list_.push_back(*number);
      const std::string* text = std::get_if<std::string>(&value);
      is_texts_ = is_texts_ && text != nullptr && texts_.size() < 65536;
      if (is_texts_) texts_.push_back(*text);
    }
    return true;
  }

  int depth_ = 0;
  int within_arguments_ = 0;
  bool saw_mapping_ = false, saw_arguments_ = false, has_key_ = false, is_numbers_ = false,
       is_texts_ = false;
  std::string key_;
  const char* problem_ = "";
  ConfigList list_;
  ConfigTexts texts_;
  ConfigValues top_, arguments_;
};

}  // namespace

Result<ConfigValues> parse_yaml_config(std::string_view text) { return MappingReader().read(text); }

}  // namespace gpumemprof
