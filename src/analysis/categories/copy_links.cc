#include "analysis/categories/copy_links.h"

#include <algorithm>

namespace gpumemprof {
namespace {

constexpr size_t kMost = 16;  // links of one block; the last ones count

}  // namespace

void CopyLinks::add(const Block& block, const Block& other, Kind kind) {
  put(block, {other, kind});
  put(other, {block, kWatcher});
}

void CopyLinks::put(const Block& block, const Link& link) {
  std::vector<Link>& links = links_[key(block)];
  const auto known = std::ranges::find_if(links, [&](const Link& l) {
    return l.kind == link.kind && l.other.device == link.other.device &&
           l.other.number == link.other.number;
  });
  if (known != links.end()) {
    *known = link;
    return;
  }
  if (links.size() == kMost) links.erase(links.begin());
  links.push_back(link);
}

const std::vector<CopyLinks::Link>* CopyLinks::of(const Block& block) const {
  const auto found = links_.find(key(block));
  return found == links_.end() ? nullptr : &found->second;
}

}  // namespace gpumemprof
