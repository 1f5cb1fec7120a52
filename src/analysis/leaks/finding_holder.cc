#include <algorithm>
#include <string>

#include "analysis/finding_figure.h"
#include "analysis/leaks/leak_findings.h"
#include "analysis/leaks/leak_names.h"

namespace gpumemprof {
namespace {

/// So many tensors a storage are parts of it.
constexpr uint64_t kViewsABlock = 2;
constexpr const char* kRecordAgain = "record with gpumemprof run --explain-leaks to name it";

/// Whether the looks saw few of the blocks that are live at the end, each of them with a name.
bool is_early(const HolderStacks::Held& held, uint64_t live_blocks) {
  constexpr uint64_t kEarlyPart = 4;
  return held.live_blocks != 0 && held.reached_blocks == held.live_blocks &&
         kEarlyPart * held.live_blocks < live_blocks;
}

/// What a look was too short for is a reason only if it left a block of these without a name.
std::string why_none(const HolderStacks::Held& held, uint64_t live_blocks,
                     const std::string& why_incomplete) {
  if (held.live_blocks == 0) return "none of it was live at the last look";
  if (is_early(held, live_blocks)) {
    return "the looks saw only " + std::to_string(held.live_blocks) + " of " +
           std::to_string(live_blocks) + " blocks; " + kRecordAgain;
  }
  if (2 * held.returned_blocks > held.live_blocks) {
    return std::string("at the look variables of a library's functions had it, which have returned "
                       "since; ") +
           kRecordAgain;
  }
  if (!why_incomplete.empty() && held.reached_blocks < held.live_blocks) return why_incomplete;
  if (held.reached_blocks == 0) return "no Python object was found that holds it";
  return "no single name holds most of it; names were found for " +
         std::to_string(held.reached_blocks) + " of " + std::to_string(held.live_blocks) +
         (held.live_blocks == 1 ? " block" : " blocks");
}

}  // namespace

void add_holder(const HolderStacks::Held& held, std::string_view container, uint64_t live_blocks,
                const ProcessHolders* told, Finding* finding) {
  const bool is_known = !container.empty() || held.holder;
  if (is_known) {
    const std::string_view path = container.empty() ? held.holder->path : container;
    const std::string_view name = container.empty() ? std::string_view(held.holder->name)
                                                    : path.substr(0, path.find_first_of(", "));
    finding->facts.emplace_back("holder", path);
    if (!name.empty()) finding->facts.emplace_back("holder_name", name);
    finding->evidence.emplace_back("held_blocks", held.held_blocks);
    if (!is_early(held, live_blocks)) return;
    finding->evidence.emplace_back("seen_blocks", held.live_blocks);
    finding->evidence.emplace_back("live_blocks", live_blocks);
    return;
  }
  const bool has_looks = told && !told->looks.empty();
  finding->facts.emplace_back(
      "holder", has_looks ? "unknown, because " +
                                why_none(held, live_blocks, told->looks.back().why_incomplete)
                          : std::string("unknown; ") + kRecordAgain);
  if (finding->name == kGrowth && (!has_looks || is_early(held, live_blocks)))
    finding->fix += "; gpumemprof run --explain-leaks names it";
}

void add_views(const LeakEvidence& evidence, Finding* finding) {
  const ViewedBlocks& viewed = evidence.viewed;
  // A graph keeps its storage, too.
  if (!evidence.holder || evidence.holder->with_graph != 0) return;
  if (2 * viewed.bytes <= evidence.held_bytes) {
    // A look that came early may have seen all parts of a batch, of which one is left later.
    const uint64_t views = evidence.holder->tensors;
    const uint64_t blocks = std::max(evidence.holder->storages, evidence.held_blocks);
    if (!find_figure(*finding, "seen_blocks") || views < kViewsABlock * blocks) return;
    finding->evidence.emplace_back("views", views);
    finding->fix = "copy each part of a batch with clone() before it is kept, if other parts of it "
                   "are dropped: each keeps the whole batch; " + finding->fix;
    return;
  }
  finding->evidence.emplace_back("viewed_blocks", viewed.blocks);
  finding->evidence.emplace_back("viewed_bytes", viewed.bytes);
  finding->evidence.emplace_back("shown_bytes", viewed.shown_bytes);
  finding->fix = "copy each view with clone() before it is kept; " + finding->fix;
}

bool tells_views(const Finding& finding) {
  return find_figure(finding, "viewed_bytes") || find_figure(finding, "views");
}

}  // namespace gpumemprof
