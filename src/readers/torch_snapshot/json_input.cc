#include "readers/torch_snapshot/assemble.h"

#include <iterator>
#include <nlohmann/json.hpp>
#include <vector>

namespace gpumemprof::torch_snapshot {
namespace {

constexpr size_t kMostNested = 1000;
constexpr size_t kMostValues = 1 << 20;       // that wait for the object around them
constexpr size_t kEagerItems = 1000;          // items that a list takes at once
constexpr uint64_t kMostTextBytes = 4 << 20;  // one token
constexpr size_t kKeptTextBytes = 64 << 10;

/// The bytes of the window, one after the other, as nlohmann's parser wants them.
class Bytes {
 public:
  Bytes(Window& window, const std::function<void(double)>& on_progress)
      : window_(window), on_progress_(on_progress), at_(window.begin()) {
    refill();
  }
  bool has_ended() const { return at_ == end_; }
  char get() const { return static_cast<char>(*at_); }
  void advance() {
    if (++at_ == end_) refill();
    // A token without an end would be kept whole by the parser: to it, the file ends here.
    if (++since_value_ > kMostTextBytes) too_long_ = true, at_ = end_;
  }
  void value_is_complete() { since_value_ = 0; }
  uint64_t offset() const { return window_.offset_of(at_); }
  bool too_long() const { return too_long_; }
  const Status& status() const { return status_; }

 private:
  void refill() {
    status_ = window_.refill(&at_);
    end_ = status_ ? window_.end() : at_;
    if (on_progress_)
      on_progress_(static_cast<double>(offset()) / static_cast<double>(window_.size_bytes() + 1));
  }

  Window& window_;
  const std::function<void(double)>& on_progress_;
  const uint8_t* at_;
  const uint8_t* end_ = nullptr;
  uint64_t since_value_ = 0;
  bool too_long_ = false;
  Status status_;
};

class ByteIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = char;

  ByteIterator() = default;
  explicit ByteIterator(Bytes* bytes) : bytes_(bytes) {}
  char operator*() const { return bytes_->get(); }
  ByteIterator& operator++() {
    bytes_->advance();
    return *this;
  }
  ByteIterator operator++(int) {
    ByteIterator before = *this;
    bytes_->advance();
    return before;
  }
  /// Only ever compared with the end.
  friend bool operator==(const ByteIterator& a, const ByteIterator&) {
    return a.bytes_ == nullptr || a.bytes_->has_ended();
  }

 private:
  Bytes* bytes_ = nullptr;
};

/// Takes the parser's calls and builds.
class Handler : public nlohmann::json_sax<nlohmann::json> {
 public:
  Handler(Bytes& bytes, Builder& builder) : bytes_(bytes), builder_(builder) {}

  bool null() override { return add(builder_.none()); }
  bool boolean(bool value) override { return add(builder_.boolean(value)); }
  bool number_integer(number_integer_t value) override { return add(builder_.integer(value)); }
  bool number_unsigned(number_unsigned_t value) override {
    return add(value >> 63 ? builder_.unsigned_integer(value)
                           : builder_.integer(static_cast<int64_t>(value)));
  }
  bool number_float(number_float_t value, const string_t&) override {
    return add(builder_.real(value));
  }
  bool string(string_t& value) override { return add(text(value)); }
  bool binary(binary_t&) override { return add(builder_.opaque()); }
  bool key(string_t& value) override { return add(text(value)); }
  bool start_object(std::size_t) override { return open(builder_.empty_dict()); }
  bool start_array(std::size_t) override { return open(builder_.empty_list()); }
  bool end_object() override {
    const size_t begin = marks_.back();
    if (!builder_.set_items(&values_[begin - 1], values_.data() + begin, values_.size() - begin,
                            bytes_.offset()))
      return refuse(builder_.failure());
    return close();
  }
  bool end_array() override { return hand_over() && close(); }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception&) override {
    return refuse(bytes_.too_long() ? "a text or number is too long"
                                    : "not JSON from here on, or the file is truncated");
  }

  const std::string& error() const { return error_; }
  Value top() const { return values_.empty() ? Value{} : values_[0]; }

 private:
  Value text(const std::string& value) {
    return value.size() > kKeptTextBytes ? builder_.opaque() : builder_.loose_text(value);
  }
  bool add(const Value& value) {
    bytes_.value_is_complete();
    if (values_.size() >= kMostValues) return refuse("too many values in an object");
    values_.push_back(value);
    return !in_list() || values_.size() - marks_.back() < kEagerItems || hand_over();
  }
  bool in_list() const { return !marks_.empty() && is_list_.back(); }
  bool open(const Value& container) {
    if (marks_.size() >= kMostNested) return refuse("nested more than 1,000 levels deep");
    bytes_.value_is_complete();
    values_.push_back(container);
    marks_.push_back(values_.size());
    is_list_.push_back(container.kind == Kind::kEmptyList);
    return true;
  }
  bool close() {
    values_.resize(marks_.back());
    marks_.pop_back();
    is_list_.pop_back();
    bytes_.value_is_complete();
    return !in_list() || values_.size() - marks_.back() < kEagerItems || hand_over();
  }
  /// The values since the list's beginning become items of it.
  bool hand_over() {
    const size_t begin = marks_.back();
    if (!builder_.append(&values_[begin - 1], values_.data() + begin, values_.size() - begin,
                         bytes_.offset()))
      return refuse(builder_.failure());
    values_.resize(begin);
    return true;
  }
  bool refuse(std::string why) {
    if (error_.empty()) error_ = std::move(why);
    return false;
  }

  Bytes& bytes_;
  Builder& builder_;
  std::vector<Value> values_;
  std::vector<size_t> marks_;  // where the items of each open container begin
  std::vector<bool> is_list_;
  std::string error_;
};

}  // namespace

Result<Value> read_json(Window& window, Builder& builder,
                        const std::function<void(double)>& on_progress) {
  Bytes bytes(window, on_progress);
  Handler handler(bytes, builder);
  const bool complete = nlohmann::json::sax_parse(ByteIterator(&bytes), ByteIterator(), &handler);
  if (!bytes.status()) return std::unexpected(bytes.status().error());
  if (!complete) return fail_at(bytes.offset(), handler.error());
  return handler.top();
}

}  // namespace gpumemprof::torch_snapshot
