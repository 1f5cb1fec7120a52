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
  std::vector<uint32_t> high, low, stream, pool;
  std::vector<uint64_t> bytes;
  std::vector<uint8_t> flags;
  std::map<std::pair<int64_t, int64_t>, uint32_t> pools;
  Json names = Json::object();
  const std::vector<int64_t>& streams = file.facts().streams;
  for (const auto& [address, range] : space.ranges()) {
    high.push_back(static_cast<uint32_t>(address >> 32));
    low.push_back(static_cast<uint32_t>(address));
    bytes.push_back(range.size_bytes);
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
    flags.push_back(range.is_expandable ? 1 : 0);
  }
  out->add("segment_address_hi", high), out->add("segment_address_lo", low);
  out->add("segment_bytes", bytes), out->add("segment_stream", stream);
  out->add("segment_pool", pool), out->add("segment_flags", flags);
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
  std::vector<uint32_t> blocks, high, low, stack;
  std::vector<uint64_t> bytes;
  std::vector<uint8_t> state, category;
  const bool has_pending = table.pending.at(moment) != 0;
  table.each_live(moment, [&](uint32_t b) { blocks.push_back(b); });
  std::ranges::sort(blocks, {}, [&](uint32_t b) { return table.address[b]; });
  nlohmann::json stacks = nlohmann::json::object();  // sorted: an ordered one looks at every name
  absl::flat_hash_map<uint32_t, bool> named;
  for (const uint32_t b : blocks) {
    high.push_back(static_cast<uint32_t>(table.address[b] >> 32));
    low.push_back(static_cast<uint32_t>(table.address[b]));
    bytes.push_back(table.size_bytes[b]), stack.push_back(table.stack[b]);
    state.push_back(has_pending && table.is_pending(b, moment) ? kPendingBlock : kLiveBlock);
    category.push_back(static_cast<uint8_t>(table.kinds[table.kind_at(b, moment)].category));
    if (named.try_emplace(table.stack[b], true).second) {
      stacks[std::to_string(table.stack[b])] =
          headline_text(tables, headline_node(tables, table.stack[b]), "");
    }
  }
  out.add("block_address_hi", high), out.add("block_address_lo", low);
  out.add("block_bytes", bytes), out.add("block_state", state), out.add("block_id", blocks);
  out.add("block_stack", stack), out.add("block_category", category);
  header["stacks"] = std::move(stacks);
  header["sizes"] = file.devices()[device].has_requested_sizes ? "requested" : "rounded";
  return columns_answer(out.finish(std::move(header)));
}

}  // namespace gpumemprof
