// Fields of JSON that anybody may have written: what is of another type counts as not there.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"

namespace gpumemprof {

/// Why a text is no JSON: keeps nothing of it, so that a hostile one costs no memory.
class JsonCheck final : public nlohmann::json::json_sax_t {
 public:
  explicit JsonCheck(size_t most_nested) : most_nested_(most_nested) {}
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(int64_t) override { return true; }
  bool number_unsigned(uint64_t) override { return true; }
  bool number_float(double, const std::string&) override { return true; }
  bool string(std::string&) override { return true; }
  bool binary(nlohmann::json::binary_t&) override { return true; }
  bool key(std::string&) override { return true; }
  bool start_object(size_t) override { return ++nested_ <= most_nested_; }
  bool end_object() override { return --nested_, true; }
  bool start_array(size_t) override { return ++nested_ <= most_nested_; }
  bool end_array() override { return --nested_, true; }
  bool parse_error(size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    return error_at = position, false;
  }
  size_t error_at = 0;

 private:
  size_t nested_ = 0, most_nested_;
};

/// Of one text or name.
inline constexpr size_t kMostFieldBytes = 4096;

/// Null where the file cannot be read, is larger than `most_bytes` or holds no object.
inline nlohmann::json read_json_object(const std::string& path, size_t most_bytes) {
  auto text = read_small_file(path, most_bytes);
  nlohmann::json json = text ? nlohmann::json::parse(*text, nullptr, false) : nlohmann::json();
  return json.is_object() ? std::move(json) : nlohmann::json();
}

/// Null where there is no such field.
inline const nlohmann::json* field_of(const nlohmann::json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return found == object.end() ? nullptr : &*found;
}

/// Cut before the character that goes beyond kMostFieldBytes; empty where it is no text.
inline std::string text_of(const nlohmann::json& value) {
  if (!value.is_string()) return {};
  const std::string& text = value.get_ref<const std::string&>();
  if (text.size() <= kMostFieldBytes) return text;
  size_t end = kMostFieldBytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end);
}

inline std::string text_field(const nlohmann::json& object, const char* key) {
  const nlohmann::json* field = field_of(object, key);
  return field ? text_of(*field) : std::string();
}

inline std::optional<uint64_t> number_field(const nlohmann::json& object, const char* key) {
  const nlohmann::json* field = field_of(object, key);
  if (!field || !field->is_number_unsigned()) return std::nullopt;
  return field->get<uint64_t>();
}

/// The texts of a list, at most `most`; what is no text is empty.
inline std::vector<std::string> texts_field(const nlohmann::json& object, const char* key,
                                            size_t most) {
  std::vector<std::string> out;
  const nlohmann::json* field = field_of(object, key);
  if (!field || !field->is_array()) return out;
  for (const nlohmann::json& text : *field) {
    if (out.size() < most) out.push_back(text_of(text));
  }
  return out;
}

/// Null where the field is no array.
inline const nlohmann::json* list_field(const nlohmann::json& object, const char* key) {
  const nlohmann::json* field = field_of(object, key);
  return field && field->is_array() ? field : nullptr;
}

/// A value as JSON, or null where there is none.
template <class T>
nlohmann::ordered_json or_null(const std::optional<T>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}

}  // namespace gpumemprof
