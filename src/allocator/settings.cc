// The text of PYTORCH_CUDA_ALLOC_CONF, as each release reads it.
#include <algorithm>
#include <bit>
#include <charconv>

#include "allocator/config.h"

namespace gpumemprof {
namespace {

/// What a key does here, and since when it is accepted.
enum class Key : uint8_t {
  kMaxSplit,
  kNonSplitRounding,
  kLargeSegment,
  kGarbageCollection,
  kRoundup,
  kExpandable,
  kFraction,
  kThrow,
  kReserve,
  kBackend,
  kBool,    ///< True or False, without effect on placement
  kNumber,  ///< a number, without effect on placement
  kPower,   ///< the same, a power of two
};
struct KeyRule {
  std::string_view name;
  uint16_t first_minor;
  Key key;
};
constexpr KeyRule kKeys[] = {
    {"max_split_size_mb", 0, Key::kMaxSplit},
    {"max_non_split_rounding_mb", 6, Key::kNonSplitRounding},
    {"large_segment_size_mb", 11, Key::kLargeSegment},
    {"garbage_collection_threshold", 0, Key::kGarbageCollection},
    {"roundup_power2_divisions", 0, Key::kRoundup},
    {"expandable_segments", 1, Key::kExpandable},
    {"per_process_memory_fraction", 10, Key::kFraction},
    {"backend", 0, Key::kBackend},
    {"release_lock_on_cudamalloc", 3, Key::kBool},
    {"pinned_use_cuda_host_register", 1, Key::kBool},
    {"pinned_use_background_threads", 6, Key::kBool},
    {"pinned_num_register_threads", 1, Key::kPower},
    {"graph_capture_record_stream_reuse", 9, Key::kBool},
    {"pinned_reserve_segment_size_mb", 10, Key::kNumber},
    {"pinned_max_round_threshold_mb", 13, Key::kNumber},
    {"throw_on_cudamalloc_oom", 12, Key::kThrow},
    {"expandable_segments_reserve", 15, Key::kReserve},
};

/// Words and the four marks ,:[] in their order; blanks do not count.
std::vector<std::string_view> split(std::string_view text, std::string* storage) {
  for (char c : text) {
    if (!std::string_view(" \t\n\r\f\v").contains(c)) storage->push_back(c);
  }
  std::vector<std::string_view> tokens;
  const std::string_view rest = *storage;
  for (size_t at = 0; at < rest.size();) {
    size_t end = rest.find_first_of(",:[]", at);
    if (end == at) ++end;
    tokens.push_back(rest.substr(at, end == std::string_view::npos ? end : end - at));
    at = end == std::string_view::npos ? rest.size() : end;
  }
  return tokens;
}

class Parser {
 public:
  Parser(std::string_view text, const Release& release)
      : release_(release), tokens_(split(text, &storage_)) {}

  Result<AllocatorConfig> parse() {
    while (at_ < tokens_.size()) {
      if (Status ok = item(); !ok) return std::unexpected(ok.error());
      if (at_ < tokens_.size()) {
        if (Status ok = expect(","); !ok) return std::unexpected(ok.error());
      }
    }
    if (Status ok = check_together(); !ok) return std::unexpected(ok.error());
    return std::move(config_);
  }

 private:
  std::unexpected<Error> refuse(std::string message) const {
    return fail(ErrorCode::kUsage, std::move(message));
  }
  std::unexpected<Error> refuse_value(std::string_view needs) const {
    return refuse(std::string(name_) + " needs " + std::string(needs) +
                  (value_.empty() ? "" : ", not " + std::string(value_)) + " in PyTorch " +
                  release_name(release_));
  }

  std::string_view take() {
    value_ = at_ < tokens_.size() ? tokens_[at_] : std::string_view();
    ++at_;
    return value_;
  }
  Status expect(std::string_view mark) {
    if (take() == mark) return {};
    return refuse("\"" + std::string(mark) + "\" expected after " + std::string(name_) +
                  (value_.empty() ? ", the settings end there" : ", not " + std::string(value_)));
  }
  bool at_mark(std::string_view mark) const { return at_ < tokens_.size() && tokens_[at_] == mark; }

  template <class Number>
  std::optional<Number> number() {
    const std::string_view text = take();
    Number value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || error != std::errc() || end != text.data() + text.size()) return {};
    return value;
  }
  /// MiB to bytes, up to an exbibyte.
  std::optional<uint64_t> megabytes() {
    const auto value = number<uint64_t>();
    if (!value || *value > (1ull << 40)) return {};
    return *value * kMiB;
  }
  std::optional<bool> boolean() {
    const std::string_view text = take();
    if (text == "True") return true;
    if (text == "False") return false;
    return {};
  }

  Status item() {
    name_ = tokens_[at_++];
    if (name_.contains('='))
      return refuse("settings are KEY:VALUE, with commas in between: " + std::string(name_));
    const KeyRule* rule = std::ranges::find(kKeys, name_, &KeyRule::name);
    if (rule == std::end(kKeys)) {
      return refuse("PyTorch has no allocator setting " + std::string(name_) + "; known are " +
                    known_names());
    }
    if (rule->first_minor > release_.minor) {
      return refuse("PyTorch " + release_name(release_) + " has no allocator setting " +
                    std::string(name_) + ": it was added in 2." +
                    std::to_string(rule->first_minor));
    }
    if (Status ok = expect(":"); !ok) return ok;
    return value(rule->key);
  }

  std::string known_names() const {
    std::string names;
    for (const KeyRule& rule : kKeys)
      if (rule.first_minor <= release_.minor)
        names += (names.empty() ? "" : ", ") + std::string(rule.name);
    return names;
  }

  Status value(Key key) {
    switch (key) {
      case Key::kMaxSplit:
      case Key::kNonSplitRounding:
        return size_limit(key);
      case Key::kLargeSegment: {
        const auto bytes = megabytes();
        if (!bytes || *bytes <= 10 * kMiB) return refuse_value("more than 10 (MB)");
        config_.large_segment_bytes = *bytes;
        return {};
      }
      case Key::kGarbageCollection: {
        const auto share = number<double>();
        if (!share || !(*share > 0 && *share < 1)) return refuse_value("a share between 0 and 1");
        config_.garbage_collection_threshold = *share;
        return {};
      }
      case Key::kFraction: {
        const auto share = number<double>();
        if (!share || !(*share >= 0 && *share <= 1)) return refuse_value("a share from 0 to 1");
        config_.memory_fraction = *share;
        return {};
      }
      case Key::kExpandable: {
        const auto on = boolean();
        if (!on) return refuse_value("True or False");
        config_.expandable_segments = *on;
        return {};
      }
      case Key::kRoundup:
        return at_mark("[") ? roundup_list() : roundup_number();
      case Key::kBackend:
        return backend();
      case Key::kBool:
        return without_effect(boolean().has_value(), "True or False");
      case Key::kNumber:
        return without_effect(number<uint64_t>().has_value(), "a number");
      case Key::kPower: {
        const auto count = number<uint64_t>();
        return without_effect(count && std::has_single_bit(*count) && *count <= 128,
                              "a power of two up to 128");
      }
      case Key::kThrow: {
        const auto on = boolean();
        if (!on) return refuse_value("True or False");
        config_.throws_at_refusal = *on;
        return {};
      }
      case Key::kReserve:
        return reserve();
    }
    return {};
  }

  /// "0.5" is a share of the device, "40G" are bytes.
  Status reserve() {
    const std::string_view text = take();
    double amount = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), amount);
    const std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
    const size_t power = unit.empty() ? 0 : std::string_view("KMGT").find(unit[0]) + 1;
    if (text.empty() || error != std::errc() || !(amount > 0) || unit.size() > 1 || power > 4) {
      return refuse_value("a share, or bytes as in 40G");
    }
    if (power == 0 && text.contains('.')) {
      config_.reserve_share = amount;
    } else {
      const double bytes = amount * static_cast<double>(1ull << (10 * power));
      config_.reserve_bytes = static_cast<uint64_t>(std::min(bytes, 0x1p60));
    }
    return {};
  }

  Status without_effect(bool valid, std::string_view needs) {
    if (!valid) return refuse_value(needs);
    config_.keys_without_effect.emplace_back(name_);
    return {};
  }

  Status size_limit(Key key) {
    const auto bytes = megabytes();
    const uint64_t least = release_.twenty_mb_is_refused ? 20 * kMiB + 1 : 20 * kMiB;
    // From the release on that lets large segments have another size, that is the bound.
    const bool bound_moves = release_.minor >= 11;
    if (!bytes || (!bound_moves && *bytes < least)) {
      return refuse_value(release_.twenty_mb_is_refused ? "more than 20 (MB)" : "20 (MB) or more");
    }
    if (key == Key::kMaxSplit) {
      config_.max_split_size_bytes = *bytes;
    } else {
      config_.max_non_split_rounding_bytes = *bytes;
    }
    return {};
  }

  Status check_together() {
    const uint64_t large = config_.large_segment_bytes;
    for (auto [name, bytes] : {std::pair{"max_split_size_mb", config_.max_split_size_bytes},
                               {"max_non_split_rounding_mb",
                                config_.max_non_split_rounding_bytes.value_or(kUnlimited)}}) {
      if (release_.minor >= 11 && bytes < large) {
        return refuse(std::string(name) + " needs " + std::to_string(large / kMiB) +
                      " (MB, the size of large segments) or more in PyTorch " +
                      release_name(release_));
      }
    }
    return {};
  }

  Status backend() {
    const std::string_view name = take();
    if (name == "native") return without_effect(true, "");
    if (name == "cudaMallocAsync") {
      return fail(ErrorCode::kUnsupported,
                  "backend:cudaMallocAsync cannot be simulated: the driver places the blocks");
    }
    return refuse_value("native or cudaMallocAsync");
  }

  Status roundup_number() {
    const auto divisions = number<uint64_t>();
    if (!divisions || !std::has_single_bit(*divisions)) return refuse_value("a power of two");
    config_.roundup_divisions.fill(*divisions);
    return {};
  }

  /// [256:1,512:2,>:4]: divisions by size in MiB. Buckets between two listed ones stay 0, those
  /// below the first take its value, `>` fills the end.
  Status roundup_list() {
    take();  // [
    bool first = true;
    size_t last = 0;
    while (!at_mark("]")) {
      if (Status ok = roundup_entry(&first, &last); !ok) return ok;
      if (at_mark("]")) break;
      if (Status ok = expect(","); !ok) return ok;
    }
    take();
    return {};
  }

  Status roundup_entry(bool* first, size_t* last) {
    auto& buckets = config_.roundup_divisions;
    const bool rest = at_mark(">");
    std::optional<uint64_t> size_mib;
    if (rest) {
      take();
    } else {
      size_mib = number<uint64_t>();
      if (!size_mib || !std::has_single_bit(*size_mib))
        return refuse_value("sizes that are powers of two");
    }
    if (Status ok = expect(":"); !ok) return ok;
    const auto divisions = number<uint64_t>();
    if (!divisions || (*divisions != 0 && !std::has_single_bit(*divisions))) {
      return refuse_value("divisions that are powers of two");
    }
    if (rest) {
      const size_t from = release_.rest_fills_last_bucket ? *last : *last + 1;
      std::fill(buckets.begin() + static_cast<ptrdiff_t>(std::min(from, buckets.size())),
                buckets.end(), *divisions);
    } else {
      const size_t index = std::min<size_t>(std::bit_width(*size_mib) - 1, buckets.size() - 1);
      if (*first) std::fill_n(buckets.begin(), index, *divisions);
      buckets[index] = *divisions;
      *last = index;
    }
    *first = false;
    return {};
  }

  const Release& release_;
  std::string storage_;
  std::vector<std::string_view> tokens_;
  size_t at_ = 0;
  std::string_view name_, value_;
  AllocatorConfig config_;
};

}  // namespace

Result<AllocatorConfig> parse_settings(std::string_view text, const Release& release) {
  return Parser(text, release).parse();
}

}  // namespace gpumemprof
