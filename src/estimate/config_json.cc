#include <nlohmann/json.hpp>

#include "estimate/config_values.h"

namespace gpumemprof {
namespace {

using Json = nlohmann::json;

/// Takes the members of the outermost object as they come; deeper objects are skipped, but for
/// quantization_config.
class TopLevelKeys : public nlohmann::json_sax<Json> {
 public:
  ConfigValues values;
  Error error{ErrorCode::kBadInput, "is not a JSON object", 0};

  bool null() override { return put(std::monostate()); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(int64_t value) override { return put(static_cast<double>(value)); }
  bool number_unsigned(uint64_t value) override { return put(static_cast<double>(value)); }
  bool number_float(double value, const std::string&) override { return put(value); }
  bool string(std::string& value) override {
    // Of "architectures" the first one counts.
    if (depth_ == 2 && in_list_ && !has_first_text_) {
      has_first_text_ = true;
      values.set(key_ + "_0", value);
    }
    return put(std::move(value));
  }
  bool binary(binary_t&) override { return false; }
  bool start_object(size_t) override { return enter(false); }
  bool end_object() override { return leave(); }
  bool start_array(size_t) override { return enter(true); }
  bool end_array() override {
    if (depth_ == 2 && in_list_ && is_numbers_) values.set(key_, list_);
    if (depth_ == 2 && in_list_ && is_texts_ && !texts_.empty()) values.set(key_, texts_);
    return leave();
  }
  bool key(std::string& name) override {
    if (depth_ == 1) key_ = name;
    if (depth_ == 2) member_ = name;
    return true;
  }
  bool parse_error(size_t offset, const std::string&,
                   const nlohmann::detail::exception&) override {
    error = {ErrorCode::kBadInput, "is not valid JSON", offset == 0 ? 0 : offset - 1};
    return false;
  }

 private:
  static constexpr int kMaxDepth = 64;
  static constexpr size_t kMaxList = 65536;

  bool enter(bool list) {
    if (depth_ == 0 && list) return false;
    if (++depth_ > kMaxDepth) {
      error = {ErrorCode::kBadInput, "is nested too deeply"};
      return false;
    }
    if (depth_ == 2) {
      in_list_ = list;
      is_quantization_ = !list && key_ == "quantization_config";
      if (is_quantization_) values.set(key_, true);
      is_numbers_ = is_texts_ = true;
      has_first_text_ = false;
      list_.clear();
      texts_.clear();
    } else if (depth_ == 3) {
      is_numbers_ = is_texts_ = false;
    }
    return true;
  }
  bool leave() {
    --depth_;
    return true;
  }
  bool put(ConfigValue value) {
    if (depth_ == 0) return false;
    if (depth_ == 1) {
      values.set(key_, std::move(value));
    } else if (depth_ == 2 && in_list_) {
      const double* number = std::get_if<double>(&value);
      is_numbers_ = is_numbers_ && number != nullptr && list_.size() < kMaxList;
      if (is_numbers_) list_.push_back(*number);
      const std::string* text = std::get_if<std::string>(&value);
      is_texts_ = is_texts_ && text != nullptr && texts_.size() < kMaxList;
      if (is_texts_) texts_.push_back(*text);
    } else if (depth_ <= 3 && is_quantization_) {
      values.set(key_ + "." + member_, std::move(value));
    }
    return true;
  }

  int depth_ = 0;
  bool in_list_ = false, is_numbers_ = false, is_texts_ = false, has_first_text_ = false;
  bool is_quantization_ = false;
  std::string key_, member_;
  ConfigList list_;
  ConfigTexts texts_;
};

}  // namespace

Result<ConfigValues> parse_json_config(std::string_view text) {
  TopLevelKeys keys;
  if (!Json::sax_parse(text.begin(), text.end(), &keys)) return std::unexpected(keys.error);
  return std::move(keys.values);
}

}  // namespace gpumemprof
