// holders: who holds what, as a tree.

#include "page/answers.h"
#include "page/held_tree.h"

namespace gpumemprof {
namespace {

using Json = nlohmann::ordered_json;

enum class What : uint8_t { kLive, kAllocated, kLeft, kFreed };

/// Calls see(block, moment) for each requested block, with the moment at which it is used.
template <class See>
void each_held(const BlockTable& table, What what, const PageRequest::Window& window,
               const See& see) {
  const uint32_t last = window.to - 1;
  if (what == What::kLive) {
    table.each_live(last, [&](uint32_t block) { see(block, last); });
    return;
  }
  if (what == What::kFreed) {
    for (uint32_t m = window.from + 1; m <= last; ++m) {
      if (table.change(m) == BlockChange::kFree) see(table.changed(m), m - 1);
      if (const uint32_t replaced = table.replaced_at(m); replaced != kNone) see(replaced, m - 1);
    }
    return;
  }
  const uint32_t end = table.started_by(last);
  for (uint32_t b = table.started_by(window.from); b < end; ++b) {
    const bool is_left = last < table.end[b];
    if (what == What::kAllocated || is_left) see(b, is_left ? last : table.start[b]);
  }
}

}  // namespace

PageAnswer holders_answer(PageRequest& request) {
  const size_t device = request.device();
  PageRequest::Window window = request.window();
  What what = What::kLive;
  const std::string asked = request.text("what");
  if (request.has("event")) {
    window.from = request.moment("event", 0);
    window.to = window.from + 1;
    if (!asked.empty() && asked != "live") request.refuse("what goes with from and to, not event");
  } else if (asked.empty() || asked == "allocated" || asked == "left" || asked == "freed") {
    what = asked == "left" ? What::kLeft : asked == "freed" ? What::kFreed : What::kAllocated;
  } else {
    request.refuse("what is none of allocated, left, freed");
  }
  const Dimension by = request.by(Dimension::kStack);
  if (by != Dimension::kStack && by != Dimension::kModule && by != Dimension::kCategory)
    request.refuse("by is none of stack, module, category");
  const auto most_nodes = static_cast<size_t>(request.number("limit", 1, 100'000, 20'000));
  const Filter filter = request.filter();
  if (request.is_refused()) return request.refusal();
  const BlockTable& table = request.table();
  const PageFile::Taken taken = request.file().taken(device, filter);
  HeldSums sums(table);
  each_held(table, what, window, [&](uint32_t block, uint32_t moment) {
    if (taken == nullptr || (*taken)[block]) sums.add(block, table.kind_at(block, moment));
  });
  const HeldTree tree = held_tree(sums, table, request.file().tables(), by, most_nodes);
  Json header = {{"from", window.from}, {"to", window.to}};
  Columns out;
  add_tree(tree, &out, &header);
  return columns_answer(out.finish(std::move(header)));
}

}  // namespace gpumemprof
