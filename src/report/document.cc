#include "report/document.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "report/words.h"

namespace gpumemprof {

std::string left_out_text(const Table& table) {
  return table.left_out == 0 ? "" : "and " + format_plural(table.left_out, "more " + table.noun);
}

ChartLine chart_line(std::string name, const std::vector<double>& times_s,
                     const std::vector<double>& bytes) {
  constexpr size_t kMostColumns = 500;
  std::vector<size_t> order(std::min(times_s.size(), bytes.size()));
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t at) { return times_s[at]; });
  ChartLine out{.name = std::move(name)};
  const auto add = [&](size_t at) {
    out.times_s.push_back(times_s[at]), out.bytes.push_back(bytes[at]);
  };
  if (order.size() <= 2 * kMostColumns) {
    std::ranges::for_each(order, add);
    return out;
  }
  for (size_t column = 0; column < kMostColumns; ++column) {
    const auto begin = order.begin() + static_cast<ptrdiff_t>(order.size() * column / kMostColumns);
    const auto end =
        order.begin() + static_cast<ptrdiff_t>(order.size() * (column + 1) / kMostColumns);
    // What is not known hides nothing that is.
    auto known = [&](size_t at) { return !std::isnan(bytes[at]); };
    const auto first = std::find_if(begin, end, known);
    if (first == end) {
      add(*begin);
      continue;
    }
    size_t least = *first, most = *first;
    for (auto at = first; at != end; ++at) {
      if (bytes[*at] < bytes[least]) least = *at;
      if (bytes[*at] > bytes[most]) most = *at;
    }
    const bool rises = times_s[least] <= times_s[most];
    add(rises ? least : most);
    if (least != most) add(rises ? most : least);
  }
  return out;
}

}  // namespace gpumemprof
