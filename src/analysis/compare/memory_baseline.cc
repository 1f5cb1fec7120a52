#include "analysis/compare/memory_baseline.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "analysis/compare/moved_lines.h"
#include "base/in_quotes.h"

namespace gpumemprof {
namespace {

constexpr uint32_t kPpmInPercent = 10'000;
constexpr uint32_t kMostPercent = 1000;

/// Lines of one file, function and text, which may stand in several places.
using TextKey = std::tuple<std::string_view, std::string_view, std::string_view>;
using PlaceKey = std::tuple<std::string_view, std::string_view, uint32_t>;
using FunctionKey = std::pair<std::string_view, std::string_view>;  // file, name

class LineMatcher {
 public:
  LineMatcher(const std::vector<PeakLine>& now, const std::vector<PeakLine>& before)
      : now_(now), before_(before), partner_(before.size()), has_partner_(now.size()) {}

  std::vector<LineChange> changes() {
    for (const PeakLine& line : now_) changes_.push_back({.line = line, .now_bytes = line.bytes});
    match<TextKey>([](const PeakLine& line) -> std::optional<TextKey> {
      if (line.source.empty()) return std::nullopt;
      return TextKey(line.file, line.function, line.source);
    });
    const std::set<FunctionKey> moved = match_moved();
    match<PlaceKey>([&](const PeakLine& line) -> std::optional<PlaceKey> {
      if (moved.contains({line.file, line.function})) return std::nullopt;
      return PlaceKey(line.file, line.function, line.line);
    });
    for (LineChange& change : changes_) change.is_new = !has_partner_[&change - changes_.data()];
    for (size_t i = 0; i < before_.size(); ++i) {
      if (!partner_[i]) changes_.push_back({.line = before_[i], .before_bytes = before_[i].bytes});
    }
    std::erase_if(changes_, [](const LineChange& change) { return change.delta() == 0; });
    std::ranges::stable_sort(changes_, std::greater(), [](const LineChange& change) {
      return std::pair(magnitude(change.delta()), change.delta());
    });
    return std::move(changes_);
  }

 private:
  /// Pairs in order what has one key: the first such line of now with the first of before. Of
  /// several before, those that are left go to the last one of now.
  template <class Key, class KeyOf>
  void match(KeyOf key_of) {
    std::map<Key, std::vector<size_t>> open;
    for (size_t i = 0; i < now_.size(); ++i) {
      if (has_partner_[i]) continue;
      if (const auto key = key_of(now_[i])) open[*key].push_back(i);
    }
    std::map<Key, size_t> used;
    for (size_t i = 0; i < before_.size(); ++i) {
      const auto key = partner_[i] ? std::nullopt : key_of(before_[i]);
      const auto found = key ? open.find(*key) : open.end();
      if (found == open.end()) continue;
      pair_up(i, found->second[std::min(used[*key]++, found->second.size() - 1)]);
    }
  }

  /// Pairs the lines of functions whose numbers no longer hold. Returns these functions.
  std::set<FunctionKey> match_moved() {
    struct Function {
      std::vector<FunctionLine> before, now;  // `frame` is the index
    };
    std::map<FunctionKey, Function> functions;
    const auto add = [&](const std::vector<PeakLine>& lines, const std::vector<bool>& is_known,
                         std::vector<FunctionLine> Function::* into) {
      for (size_t i = 0; i < lines.size(); ++i) {
        const PeakLine& of = lines[i];
        if (is_known[i] || of.line == 0) continue;
        (functions[{of.file, of.function}].*into)
            .push_back({of.line, static_cast<uint32_t>(i), 1, of.bytes, of.source});
      }
    };
    add(before_, partner_, &Function::before);
    add(now_, has_partner_, &Function::now);
    std::set<FunctionKey> moved;
    for (auto& [key, function] : functions) {
      for (auto* lines : {&function.before, &function.now})
        std::ranges::stable_sort(*lines, {}, &FunctionLine::line);
      const auto pairs = moved_pairs(function.before, function.now);
      if (!pairs) continue;
      moved.insert(key);
      for (const auto& [i, j] : *pairs) pair_up(function.before[i].frame, function.now[j].frame);
    }
    return moved;
  }

  void pair_up(size_t before, size_t now) {
    changes_[now].before_bytes += before_[before].bytes;
    has_partner_[now] = true;
    partner_[before] = true;
  }

  const std::vector<PeakLine>& now_;
  const std::vector<PeakLine>& before_;
  std::vector<LineChange> changes_;
  std::vector<bool> partner_, has_partner_;
};

/// Memories by subject and kind; views into what it is made of.
class PeakIndex {
 public:
  explicit PeakIndex(const std::vector<PeakSubject>& subjects) {
    for (const PeakSubject& subject : subjects) {
      for (const PeakMemory& memory : subject.memories)
        known_.try_emplace({subject.name, memory.kind}, &memory);
    }
  }
  const PeakMemory* find(const std::string& subject, const std::string& kind) const {
    const auto found = known_.find({subject, kind});
    return found == known_.end() ? nullptr : found->second;
  }

 private:
  std::map<std::pair<std::string_view, std::string_view>, const PeakMemory*> known_;
};

PeakComparison compare_memory(const std::string& subject, const PeakMemory& now,
                              const PeakMemory* before, uint32_t tolerance_ppm) {
  PeakComparison out{.subject = subject,
                     .kind = now.kind,
                     .verdict = PeakVerdict::kNew,
                     .now_bytes = now.peak_bytes,
                     .reserved_bytes = now.reserved_bytes,
                     .rank = now.rank,
                     .is_exact = now.is_exact,
                     .lost = now.lost};
  if (before == nullptr) return out;
  out.before_bytes = before->peak_bytes;
  if (before->basis != now.basis) out.other_basis = before->basis;
  out.lines = LineMatcher(now.lines, before->lines).changes();
  const bool grew = is_above(now.peak_bytes, before->peak_bytes, tolerance_ppm);
  const bool shrank = is_above(before->peak_bytes, now.peak_bytes, tolerance_ppm);
  out.verdict = grew ? PeakVerdict::kGrew : shrank ? PeakVerdict::kShrank : PeakVerdict::kWithin;
  return out;
}

}  // namespace

Result<uint32_t> parse_tolerance(std::string_view text) {
  const auto wrong = [&] {
    return fail(ErrorCode::kUsage, in_quotes(text) + " is not a tolerance: write 1%, 0.5% or 0");
  };
  std::string_view rest = text;
  const auto is_digit = [&] { return !rest.empty() && rest[0] >= '0' && rest[0] <= '9'; };
  if (!is_digit()) return wrong();
  uint32_t whole = 0, ppm = 0;
  for (; is_digit(); rest.remove_prefix(1)) {
    whole = whole * 10 + static_cast<uint32_t>(rest[0] - '0');
    if (whole > kMostPercent) return wrong();
  }
  if (rest.starts_with('.')) {
    rest.remove_prefix(1);
    if (!is_digit()) return wrong();
    for (uint32_t unit = kPpmInPercent / 10; is_digit(); rest.remove_prefix(1), unit /= 10)
      ppm += unit * static_cast<uint32_t>(rest[0] - '0');
  }
  ppm += whole * kPpmInPercent;
  while (rest.starts_with(' ')) rest.remove_prefix(1);
  if (rest != "%" && !(rest.empty() && ppm == 0)) return wrong();
  return ppm;
}

bool is_above(uint64_t now_bytes, uint64_t before_bytes, uint32_t tolerance_ppm) {
  using Wide = unsigned __int128;
  return Wide{now_bytes} * 1'000'000 > Wide{before_bytes} * (Wide{1'000'000} + tolerance_ppm);
}

std::vector<PeakComparison> compare_peaks(const std::vector<PeakSubject>& now,
                                          const std::vector<PeakSubject>& before,
                                          uint32_t tolerance_ppm) {
  std::vector<PeakComparison> out;
  const PeakIndex of_now(now), of_before(before);
  for (const PeakSubject& subject : now) {
    for (const PeakMemory& memory : subject.memories) {
      const PeakMemory* old = of_before.find(subject.name, memory.kind);
      out.push_back(compare_memory(subject.name, memory, old, tolerance_ppm));
    }
  }
  for (const PeakSubject& subject : before) {
    for (const PeakMemory& memory : subject.memories) {
      if (of_now.find(subject.name, memory.kind) != nullptr) continue;
      out.push_back({.subject = subject.name,
                     .kind = memory.kind,
                     .verdict = PeakVerdict::kMissing,
                     .before_bytes = memory.peak_bytes});
    }
  }
  return out;
}

}  // namespace gpumemprof
