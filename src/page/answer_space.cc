// space: the allocator's memory by address, at one moment.
#include <algorithm>
#include <map>

#include "page/address_space.h"
#include "page/answers.h"
#include "report/user_code.h"

namespace gpumemprof {
namespace {

using Json = nlohmann::ordered_json;

enum BlockStateNumber : uint8_t { kLiveBlock = 0, kPendingBlock = 2 };

void add_segments(const AddressSpace& space, const PageFile& file, Columns* out, Json* header) {
  std::vector<uint32_t> stream, pool;
  std::map<std::pair<int64_t, int64_t>, uint32_t> pools;
  Json names = Json::object();
  const std::vector<int64_t>& streams = file.facts().streams;
  for (const auto& [address, range] : space.ranges()) {
    const auto known = std::ranges::find(streams, range.stream);
    stream.push_back(known == streams.end()
                         ? kNone
                         : static_cast<uint32_t>(known - streams.begin()));
    const auto [place, is_new] = pools.try_emplace(range.pool, static_cast<uint32_t>(pools.size()));
    if (is_new) {
      const bool is_everybodys = range.pool == std::pair<int64_t, int64_t>{0, 0};
      names[std::to_string(place->second)] =
          is_everybodys ? "default pool"
                        : "private pool (" + std::to_string(range.pool.first) + ", " +
                              std::to_string(range.pool.second) + ")";
    }
    pool.push_back(place->second);
  }
  const auto add = [&](const char* name, const auto& get) { out->add(name, space.ranges(), get); };
  add("segment_address_hi", [](const auto& at) { return static_cast<uint32_t>(at.first >> 32); });
  add("segment_address_lo", [](const auto& at) { return static_cast<uint32_t>(at.first); });
  add("segment_bytes", [](const auto& at) { return at.second.size_bytes; });
  out->add("segment_stream", stream), out->add("segment_pool", pool);
  add("segment_flags", [](const auto& at) -> uint8_t { return at.second.is_expandable; });
  (*header)["pools"] = std::move(names);
}

}  // namespace

PageAnswer space_answer(PageRequest& request) {
  const size_t device = request.device();
  const uint32_t moment = request.moment("event", request.table().peak);
  if (request.is_refused()) return request.refusal();
  const PageFile& file = request.file();
  const BlockTable& table = request.table();
  const Tables& tables = file.tables();
  Columns out;
  Json header = {{"event", moment}};
  if (!file.facts().has_addresses) {
    header["unknown"] = "the source has no addresses";
    return columns_answer(out.finish(std::move(header)));
  }
  const AddressSpace space = space_at(table, moment);
  add_segments(space, file, &out, &header);
  if (space.ranges().empty()) header["unknown_segments"] = "the source has no segments";
  std::vector<uint32_t> blocks;
  const bool has_pending = table.pending.at(moment) != 0;
  table.each_live(moment, [&](uint32_t b) { blocks.push_back(b); });
  std::ranges::sort(blocks, {}, [&](uint32_t b) { return table.address[b]; });
  nlohmann::json stacks = nlohmann::json::object();  // sorted: an ordered one looks at every name
  absl::flat_hash_map<uint32_t, bool> named;
  for (const uint32_t b : blocks) {
    if (named.try_emplace(table.stack[b], true).second) {
      stacks[std::to_string(table.stack[b])] =
          headline_text(tables, headline_node(tables, table.stack[b]), "");
    }
  }
  const auto add = [&](const char* name, const auto& get) { out.add(name, blocks, get); };
  add("block_address_hi",
      [&](uint32_t b) { return static_cast<uint32_t>(table.address[b] >> 32); });
  add("block_address_lo", [&](uint32_t b) { return static_cast<uint32_t>(table.address[b]); });
  add("block_bytes", [&](uint32_t b) { return table.size_bytes[b]; });
  add("block_state", [&](uint32_t b) -> uint8_t {
    return has_pending && table.is_pending(b, moment) ? kPendingBlock : kLiveBlock;
  });
  out.add("block_id", blocks);
  add("block_stack", [&](uint32_t b) { return table.stack[b]; });
  add("block_category", [&](uint32_t b) {
    return static_cast<uint8_t>(table.kinds[table.kind_at(b, moment)].category);
  });
  header["stacks"] = std::move(stacks);
  header["sizes"] = file.devices()[device].has_requested_sizes ? "requested" : "rounded";
  return columns_answer(out.finish(std::move(header)));
}

}  // namespace gpumemprof
