// block and stack: all facts of one block; search, block_next: which blocks match a filter.
#include <algorithm>

#include "analysis/categories/category_sums.h"
#include "page/answers.h"
#include "page/held_tree.h"
#include "report/user_code.h"
#include "report/words.h"

namespace gpumemprof {
namespace {

using Json = nlohmann::ordered_json;

/// Innermost first.
Json frames_json(const Tables& tables, uint32_t stack) {
  Json frames = Json::array();
  for (uint32_t node = stack; node != 0 && node < tables.stacks.stack_count();
       node = tables.stacks.node(node).parent) {
    const Frame& frame = tables.stacks.frame_of(node);
    const std::string_view file = tables.strings.get(frame.file);
    frames.push_back({{"function", tables.strings.get(frame.function)},
                      {"file", file},
                      {"line", frame.line == 0 ? Json() : Json(frame.line)},
                      {"kind", frame_kind(file, frame.line)},
                      {"text", frame_text(tables, node)}});
  }
  return frames;
}

Json text_json(std::string_view text) { return text.empty() ? Json() : Json(text); }

std::string hex(uint64_t number) {
  std::string text;
  for (int shift = 60; shift >= 0; shift -= 4) {
    const auto digit = static_cast<size_t>(number >> shift & 15);
    if (digit != 0 || !text.empty() || shift == 0) text += "0123456789abcdef"[digit];
  }
  return "0x" + text;
}

/// What marks or rules say of a block, and with which confidence.
void add_kind(const CategoryHolder& kind, uint32_t stack, const Tables& tables, Json* out) {
  CategoryHolder holder = kind;
  holder.stack = stack;
  const HolderWork work = work_of_holder(holder, tables);
  (*out)["category"] = category_name(kind.category);
  (*out)["module"] = text_json(work.module), (*out)["phase"] = text_json(work.phase);
  (*out)["user_phase"] = text_json(work.user_phase);
  (*out)["tensor"] = text_json(tables.strings.get(kind.name));
  if (kind.rule != CategoryHolder::kNotByRules) {
    const RuleFacts& facts = facts_of(static_cast<SnapshotRule>(kind.rule));
    (*out)["rule"] = facts.name, (*out)["because"] = facts.reason;
    (*out)["confidence"] = confidence_name(facts.confidence);
  }
  if (kind.why != WhyUnknown::kNone) (*out)["why_unknown"] = why_unknown_text(kind.why);
}

}  // namespace

PageAnswer block_answer(PageRequest& request) {
  const size_t device = request.device();
  const BlockTable& table = request.table();
  if (table.blocks() == 0) return error_answer(404, "the device has no blocks");
  const auto id = static_cast<uint32_t>(request.number("id", 0, table.blocks() - 1, 0));
  if (!request.has("id")) request.refuse("id is not given");
  if (request.is_refused()) return request.refusal();
  const PageFile& file = request.file();
  const PageDevice& of = file.devices()[device];
  const Tables& tables = file.tables();
  const uint32_t end = table.end[id];
  const bool is_earlier = id < table.earlier_blocks, is_freed = end != kNone;
  const uint32_t process = tables.devices[of.index].process;
  Json block = {{"id", id},
                {"size_bytes", table.size_bytes[id]},
                {"address", file.facts().has_addresses ? Json(hex(table.address[id])) : Json()},
                {"start", table.start[id]},
                {"end", is_freed ? Json(end) : Json()},
                {"start_time_ns", is_earlier ? Json() : Json(time_of(file, of, table.start[id]))},
                {"end_time_ns", is_freed ? Json(time_of(file, of, end)) : Json()},
                {"lived_events", std::min(end, table.moments() - 1) - table.start[id]},
                {"is_freed", is_freed},
                {"was_live_before", is_earlier}};
  add_kind(table.kinds[table.kind_in_end(id)], table.stack[id], tables, &block);
  if (!table.is_told) block["why_unknown"] = of.why_no_categories;
  Json earlier = Json::array();
  for (const EarlierKind& part : table.earlier_kinds) {
    if (part.block != id) continue;
    earlier.push_back(
        {{"until", part.until}, {"category", category_name(table.kinds[part.kind].category)}});
  }
  block["earlier_categories"] = std::move(earlier);
  block["stream"] =
      table.stream.empty() ? Json() : Json(std::to_string(table.streams[table.stream[id]]));
  const uint32_t thread = table.thread.empty() ? kNone : table.thread[id];
  block["thread"] = thread < tables.threads.size()
                        ? Json(printable(tables.threads[thread].name) + " (" +
                               std::to_string(tables.threads[thread].tid) + ")")
                        : Json();
  block["process"] =
      process < tables.processes.size() ? Json(process_label(tables.processes[process])) : Json();
  block["stack"] = table.stack[id];
  return json_answer(
      {{"block", std::move(block)}, {"frames", frames_json(tables, table.stack[id])}});
}

PageAnswer stack_answer(PageRequest& request) {
  const Tables& tables = request.file().tables();
  const auto id =
      static_cast<uint32_t>(request.number("id", 0, tables.stacks.stack_count() - 1, 0));
  if (!request.has("id")) request.refuse("id is not given");
  if (request.is_refused()) return request.refusal();
  return json_answer({{"id", id},
                      {"label", headline_text(tables, headline_node(tables, id), "")},
                      {"frames", frames_json(tables, id)}});
}

PageAnswer search_answer(PageRequest& request) {
  constexpr size_t kMostListed = 200;
  const size_t device = request.device();
  const PageRequest::Window window = request.window();
  const uint32_t columns = request.columns();
  const Filter filter = request.filter("q");
  if (request.is_refused()) return request.refusal();
  const BlockTable& table = request.table();
  const PageFile::Taken taken = request.file().taken(device, filter);
  const uint64_t moments = window.to - window.from;
  std::vector<uint32_t> hits(std::min<uint64_t>(columns, moments)), listed, begin;
  uint64_t matches = 0, bytes = 0;
  table.each_live(window.from, window.to, [&](uint32_t block) {
    if (taken != nullptr && !(*taken)[block]) return;
    ++matches, bytes += table.size_bytes[block];
    const uint64_t at = std::max(table.start[block], window.from) - window.from;
    ++hits[static_cast<size_t>(at * hits.size() / moments)];
    if (listed.size() < kMostListed) listed.push_back(block);
  });
  for (size_t i = 0; i <= hits.size(); ++i) {
    // The first moment in column i.
    begin.push_back(window.from +
                    static_cast<uint32_t>((moments * i + hits.size() - 1) / hits.size()));
  }
  Columns out;
  out.add("begin", begin), out.add("hits", hits), out.add("block", listed);
  return columns_answer(out.finish(
      {{"from", window.from}, {"to", window.to}, {"matches", matches}, {"bytes", bytes}}));
}

PageAnswer block_next_answer(PageRequest& request) {
  const size_t device = request.device();
  const BlockTable& table = request.table();
  const std::string direction = request.text("direction");
  const bool is_back = direction == "previous" || direction == "-1";
  if (!direction.empty() && !is_back && direction != "next" && direction != "1")
    request.refuse("direction is neither next nor previous");
  const uint32_t after = request.moment("after", 0);
  const Filter filter = request.filter("q");
  if (request.is_refused()) return request.refusal();
  const PageFile::Taken taken = request.file().taken(device, filter);
  const auto matches = [&](uint32_t block) { return taken == nullptr || (*taken)[block] != 0; };
  const uint32_t blocks = table.blocks();
  uint32_t first = 0;
  if (!is_back) first = table.started_by(after);
  if (is_back && after > 0) first = table.started_by(after - 1);
  for (uint32_t i = 0; i < blocks; ++i) {
    // From the last one it goes on with the first.
    const uint64_t at = is_back ? uint64_t{first} + blocks - 1 - i : uint64_t{first} + i;
    const auto block = static_cast<uint32_t>(at % blocks);
    if (!matches(block)) continue;
    uint32_t position = 0, all = 0;
    for (uint32_t b = 0; b < blocks; ++b) {
      if (!matches(b)) continue;
      ++all;
      if (b <= block) ++position;
    }
    const Tables& tables = request.file().tables();
    return json_answer(
        {{"id", block},
         {"event", table.start[block]},
         {"position", position},
         {"matches", all},
         {"size_bytes", table.size_bytes[block]},
         {"line", headline_text(tables, headline_node(tables, table.stack[block]), "")}});
  }
  return json_answer({{"id", nullptr}, {"event", nullptr}});
}

}  // namespace gpumemprof
