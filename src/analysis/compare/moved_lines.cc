#include "analysis/compare/moved_lines.h"

#include <algorithm>
#include <iterator>
#include <map>

#include "trace/own_code.h"

namespace gpumemprof {
namespace {

constexpr uint32_t kNoLine = uint32_t{1} << 31;  // and above: no file has so many
constexpr double kLeastAlike = 0.5, kSameNumber = 0.1;
// Other batch sizes, and branches that one run alone took, change what lines allocate, too: the
// numbers hold unless so many times more is alike without them.
constexpr double kMargin = 1.25;

using Line = FunctionLine;
using Function = std::pair<std::string_view, std::string_view>;  // aligned file, name
using Lines = std::map<Function, std::vector<Line>>;

/// What went through each line of the user's own functions.
Lines lines_of(const DiffSide& side) {
  Lines out;
  if (!side.device) return out;
  const Tables& tables = *side.tables;
  std::vector<std::pair<uint64_t, uint64_t>> sums(tables.stacks.stack_count());
  for (const Holder& one : side.device->totals) {
    if (one.stack >= sums.size()) continue;
    sums[one.stack].first += one.count, sums[one.stack].second += one.bytes;
  }
  absl::flat_hash_map<uint32_t, Line> by_frame;
  for (size_t node = sums.size(); node-- > 1;) {  // a parent has a lower number than its children
    if (sums[node].first == 0) continue;
    const StackTable::Node& at = tables.stacks.node(static_cast<uint32_t>(node));
    Line& line = by_frame[at.frame];
    line.count += sums[node].first, line.bytes += sums[node].second;
    if (at.parent >= node) continue;
    sums[at.parent].first += sums[node].first, sums[at.parent].second += sums[node].second;
  }
  for (auto& [id, line] : by_frame) {
    const Frame& frame = tables.stacks.frame(id);
    const std::string_view file = tables.strings.get(frame.file);
    if (frame.line == 0 || !is_user_file(file)) continue;
    line.line = frame.line, line.frame = id;
    out[{aligned_file(file), tables.strings.get(frame.function)}].push_back(line);
  }
  for (auto& [function, lines] : out) std::ranges::sort(lines, {}, &Line::line);
  return out;
}

double ratio(uint64_t a, uint64_t b) {
  const auto [least, most] = std::minmax(a, b);
  return most == 0 ? 1 : static_cast<double>(least) / static_cast<double>(most);
}

bool are_as_often(const Line& a, const Line& b) { return ratio(a.count, b.count) >= kLeastAlike; }

/// Every two signs that follow one another, sorted.
std::vector<std::string_view> pairs_of_signs(std::string_view text) {
  std::vector<std::string_view> out;
  for (size_t i = 0; i + 1 < text.size(); ++i) out.push_back(text.substr(i, 2));
  std::ranges::sort(out);
  return out;
}

/// The share of both texts that they have in common.
double text_likeness(std::string_view a, std::string_view b) {
  const auto of_a = pairs_of_signs(a), of_b = pairs_of_signs(b);
  std::vector<std::string_view> both;
  std::ranges::set_intersection(of_a, of_b, std::back_inserter(both));
  return ratio(2 * both.size(), of_a.size() + of_b.size());
}

/// 0: not the same line.
double likeness(const Line& a, const Line& b) {
  double alike = ratio(a.count, b.count) * ratio(a.bytes, b.bytes);
  if (!a.source.empty() && !b.source.empty())
    alike = (alike + text_likeness(a.source, b.source)) / 2;
  if (a.line == b.line) return alike + kSameNumber;
  return alike >= kLeastAlike ? alike : 0;
}

/// The pairs in order whose likeness adds up to most.
LinePairs most_alike(const std::vector<Line>& a, const std::vector<Line>& b) {
  const size_t width = b.size() + 1;
  std::vector<double> best((a.size() + 1) * width);  // of the lines from i and j on
  for (size_t i = a.size(); i-- > 0;) {
    for (size_t j = b.size(); j-- > 0;) {
      const double alike = likeness(a[i], b[j]);
      const double both = alike == 0 ? 0 : alike + best[(i + 1) * width + j + 1];
      best[i * width + j] = std::max({both, best[(i + 1) * width + j], best[i * width + j + 1]});
    }
  }
  LinePairs out;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    if (best[i * width + j] == best[(i + 1) * width + j]) {
      ++i;
    } else if (best[i * width + j] == best[i * width + j + 1]) {
      ++j;
    } else {
      out.emplace_back(i++, j++);
    }
  }
  return out;
}

/// Where the numbers hold.
double likeness_by_number(const std::vector<Line>& a, const std::vector<Line>& b) {
  double sum = 0;
  for (const Line& one : a) {
    const auto same = std::ranges::lower_bound(b, one.line, {}, &Line::line);
    if (same != b.end() && same->line == one.line) sum += likeness(one, *same);
  }
  return sum;
}

/// Between two pairs, as many lines of each are the same ones, changed.
void fill_gaps(const std::vector<Line>& a, const std::vector<Line>& b, LinePairs* pairs) {
  LinePairs ends = *pairs;
  ends.emplace_back(a.size(), b.size());
  size_t i = 0, j = 0;
  for (const auto& [next_i, next_j] : ends) {
    if (next_i - i == next_j - j) {
      for (; i < next_i; ++i, ++j)
        if (are_as_often(a[i], b[j])) pairs->emplace_back(i, j);
    }
    i = next_i + 1, j = next_j + 1;
  }
}

}  // namespace

std::optional<LinePairs> moved_pairs(const std::vector<FunctionLine>& a,
                                     const std::vector<FunctionLine>& b) {
  if (std::max(a.size(), b.size()) > kMostMovedLines ||
      std::ranges::equal(a, b, {}, &Line::line, &Line::line))
    return std::nullopt;
  LinePairs pairs = most_alike(a, b);
  double alike = 0;
  for (const auto& [i, j] : pairs) alike += likeness(a[i], b[j]);
  if (alike <= kMargin * likeness_by_number(a, b)) return std::nullopt;
  fill_gaps(a, b, &pairs);
  return pairs;
}

MovedLines moved_lines(const DiffSide& a, const DiffSide& b) {
  MovedLines out;
  if (a.analysis == b.analysis) return out;  // two steps of one run
  const Lines of_a = lines_of(a), of_b = lines_of(b);
  for (const auto& [function, lines] : of_a) {
    const auto other = of_b.find(function);
    if (other == of_b.end()) continue;
    const auto pairs = moved_pairs(lines, other->second);
    if (!pairs) continue;
    for (const Line& line : lines) out.lines[line.frame] = kNoLine + line.frame;
    for (const auto& [i, j] : *pairs) {
      out.lines[lines[i].frame] = other->second[j].line;
      out.moved += lines[i].line != other->second[j].line;
    }
  }
  return out;
}

}  // namespace gpumemprof
