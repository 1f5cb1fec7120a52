#include "base/nearest.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace gpumemprof {
namespace {

/// Letters to add, take away, change or swap with the next one.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1), last(b.size() + 1), now(b.size() + 1);
  std::iota(last.begin(), last.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    now[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      now[j + 1] = std::min({last[j + 1] + 1, now[j] + 1, last[j] + (a[i] != b[j])});
      if (i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j])
        now[j + 1] = std::min(now[j + 1], before[j - 1] + 1);
    }
    before = last, last = now;
  }
  return last[b.size()];
}

}  // namespace

std::string nearest(std::string_view typed, const std::vector<std::string>& names) {
  constexpr size_t kMostTyped = 64, kMost = 2;
  if (typed.size() > kMostTyped) return {};
  std::string best;
  size_t least = kMost + 1;
  for (const std::string& name : names) {
    const size_t differ = distance(typed, name);
    if (differ < least && differ < name.size()) least = differ, best = name;
  }
  return best;
}

}  // namespace gpumemprof
