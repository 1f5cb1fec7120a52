#include "analysis/compare/moved_lines.h"

#include <algorithm>
#include <iterator>
#include <span>

#include "trace/own_code.h"

namespace gpumemprof {
namespace {

constexpr uint32_t kNoLine = uint32_t{1} << 31;  // and above: no file has so many
constexpr double kLeastAlike = 0.5, kSameNumber = 0.1;
// Other batch sizes, and branches that one run alone took, change what lines allocate, too: the
// numbers hold unless so many times more is alike without them.
constexpr double kMargin = 1.25;

using Line = FunctionLine;

/// A frame of the user's own code that allocated.
struct Place {
  uint64_t function;  // and its file: both by CommonNames
  uint32_t line, frame;
};

struct Lines {
  std::vector<Place> places;   // by function, then by line
  std::vector<Line> of_frame;  // what went through it
};

Lines lines_of(const DiffSide& side, bool is_b, CommonNames* names) {
  Lines out;
  if (!side.device) return out;
  const Tables& tables = *side.tables;
  std::vector<std::pair<uint64_t, uint64_t>> sums(tables.stacks.stack_count());
  for (const Holder& one : side.device->totals) {
    if (one.stack >= sums.size()) continue;
    sums[one.stack].first += one.count, sums[one.stack].second += one.bytes;
  }
  out.of_frame.resize(tables.stacks.frame_count());
  for (size_t node = sums.size(); node-- > 1;) {  // a parent has a lower number than its children
    if (sums[node].first == 0) continue;
    const StackTable::Node& at = tables.stacks.node(static_cast<uint32_t>(node));
    if (at.frame < out.of_frame.size()) {
      Line& line = out.of_frame[at.frame];
      line.count += sums[node].first, line.bytes += sums[node].second;
    }
    if (at.parent >= node) continue;
    sums[at.parent].first += sums[node].first, sums[at.parent].second += sums[node].second;
  }
  Memo users;
  users.resize(tables.strings.size());
  for (uint32_t id = 0; id < out.of_frame.size(); ++id) {
    const Frame& frame = tables.stacks.frame(id);
    if (frame.line == 0 || out.of_frame[id].count == 0) continue;
    const auto is_users = [&] { return is_user_file(tables.strings.get(frame.file)); };
    if (!users.of(frame.file, is_users)) continue;
    out.of_frame[id].line = frame.line, out.of_frame[id].frame = id;
    const uint64_t file = names->file(is_b, frame.file);
    out.places.push_back({file << 32 | names->function(is_b, frame.function), frame.line, id});
  }
  std::ranges::sort(out.places, {}, [](const Place& at) { return std::pair(at.function, at.line); });
  return out;
}

/// Of the function that begins there.
std::span<const Place> function_from(const std::vector<Place>& places, size_t at) {
  size_t end = at;
  while (end < places.size() && places[end].function == places[at].function) ++end;
  return std::span(places).subspan(at, end - at);
}

std::vector<Line> of_places(const Lines& lines, std::span<const Place> places) {
  std::vector<Line> out;
  for (const Place& at : places) out.push_back(lines.of_frame[at.frame]);
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

MovedLines moved_lines(const DiffSide& a, const DiffSide& b, CommonNames* names) {
  MovedLines out;
  if (a.analysis == b.analysis) return out;  // two steps of one run
  const Lines of_a = lines_of(a, false, names), of_b = lines_of(b, true, names);
  for (size_t i = 0, j = 0; i < of_a.places.size() && j < of_b.places.size();) {
    const auto before = function_from(of_a.places, i), now = function_from(of_b.places, j);
    if (before[0].function <= now[0].function) i += before.size();
    if (now[0].function <= before[0].function) j += now.size();
    if (before[0].function != now[0].function ||
        std::ranges::equal(before, now, {}, &Place::line, &Place::line))
      continue;
    const auto pairs = moved_pairs(of_places(of_a, before), of_places(of_b, now));
    if (!pairs) continue;
    for (const Place& at : before) out.lines[at.frame] = kNoLine + at.frame;
    for (const auto& [x, y] : *pairs) {
      out.lines[before[x].frame] = now[y].line;
      out.moved += before[x].line != now[y].line;
    }
  }
  return out;
}

}  // namespace gpumemprof
