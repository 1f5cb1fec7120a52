// blocks: the largest that were live in a range.
#include <absl/container/flat_hash_set.h>

#include <algorithm>

#include "page/answers.h"
#include "report/user_code.h"

namespace gpumemprof {
namespace {

using Json = nlohmann::ordered_json;

/// Texts for the numbers in the answer's columns, in its header.
class Names {
 public:
  uint32_t add(std::string name) {
    const auto [known, is_new] = known_.try_emplace(std::move(name), known_.size());
    if (is_new) list_[std::to_string(known->second)] = known->first;
    return static_cast<uint32_t>(known->second);
  }
  const Json& json() const { return list_; }

 private:
  absl::flat_hash_map<std::string, size_t> known_;
  Json list_ = Json::object();
};

struct Alive {
  std::vector<uint32_t> listed;
  uint64_t blocks = 0, bytes = 0;
};

/// Matching blocks that were live within the window, best first.
template <class Better>
Alive best_alive(const BlockTable& table, const PageRequest::Window& window,
                 const std::vector<uint8_t>* taken, size_t limit, const Better& better) {
  Alive alive;
  const auto see = [&](uint32_t block) {
    if (taken && !(*taken)[block]) return;
    ++alive.blocks, alive.bytes += table.size_bytes[block];
    if (alive.listed.size() < limit) {
      alive.listed.push_back(block);
      std::ranges::push_heap(alive.listed, better);
    } else if (limit != 0 && better(block, alive.listed.front())) {
      std::ranges::pop_heap(alive.listed, better);
      alive.listed.back() = block;
      std::ranges::push_heap(alive.listed, better);
    }
  };
  table.each_live(window.from, window.to, see);
  std::ranges::sort_heap(alive.listed, better);
  return alive;
}

/// The bytes at the columns' moments beyond the listed blocks.
std::vector<uint64_t> rest_of(const std::vector<KeyLevels::Column>& columns,
                              const BlockTable& table, const std::vector<uint32_t>& listed) {
  std::vector<uint32_t> moments;
  std::vector<uint64_t> rest;
  for (const KeyLevels::Column& column : columns) moments.push_back(column.range.most_at);
  std::vector<uint64_t> change(moments.size() + 1);
  for (const uint32_t block : listed) {
    const auto first = std::ranges::lower_bound(moments, table.start[block]) - moments.begin();
    const auto last = std::ranges::lower_bound(moments, table.end[block]) - moments.begin();
    change[static_cast<size_t>(first)] += table.size_bytes[block];
    change[static_cast<size_t>(last)] -= table.size_bytes[block];
  }
  uint64_t held = 0;
  for (size_t i = 0; i < moments.size(); ++i) {
    held += change[i];
    rest.push_back(columns[i].range.most - held);
  }
  return rest;
}

void add_blocks(PageRequest& request, const std::vector<uint32_t>& listed, Columns* out,
                Json* header) {
  const BlockTable& table = request.table();
  const Tables& tables = request.file().tables();
  const PageDevice& of = request.file().devices()[request.device()];
  const uint32_t process = tables.devices[of.index].process;
  Names modules;
  Json stacks = Json::object();
  std::vector<uint32_t> module;
  absl::flat_hash_map<uint64_t, uint32_t> module_of_kind;
  absl::flat_hash_set<uint32_t> named;
  for (const uint32_t b : listed) {
    const uint32_t kind = table.kind_in_end(b);
    const auto [known, is_new] =
        module_of_kind.try_emplace(uint64_t{table.stack[b]} << 32 | kind, 0);
    if (is_new) {
      std::string name = module_of(table.kinds[kind], table.stack[b], tables);
      known->second = name.empty() ? kNone : modules.add(std::move(name));
    }
    module.push_back(known->second);
    if (named.insert(table.stack[b]).second) {
      stacks[std::to_string(table.stack[b])] =
          headline_text(tables, headline_node(tables, table.stack[b]), "");
    }
  }
  const auto add = [&](const char* name, const auto& get) { out->add(name, listed, get); };
  out->add("id", listed);
  add("start", [&](uint32_t b) { return table.start[b]; });
  add("end", [&](uint32_t b) { return table.end[b]; });
  add("size_bytes", [&](uint32_t b) { return table.size_bytes[b]; });
  add("address_hi", [&](uint32_t b) { return static_cast<uint32_t>(table.address[b] >> 32); });
  add("address_lo", [&](uint32_t b) { return static_cast<uint32_t>(table.address[b]); });
  add("stack", [&](uint32_t b) { return table.stack[b]; });
  add("category", [&](uint32_t b) {
    return static_cast<uint8_t>(table.kinds[table.kind_in_end(b)].category);
  });
  out->add("module", module);
  add("stream",
      [&](uint32_t b) { return table.stream.empty() ? kNone : of.stream_of[table.stream[b]]; });
  add("thread", [&](uint32_t b) {
    return table.thread.empty() || table.thread[b] >= tables.threads.size() ? kNone
                                                                            : table.thread[b];
  });
  add("process", [&](uint32_t) { return process; });
  (*header)["modules"] = modules.json(), (*header)["stacks"] = std::move(stacks);
}

PageAnswer answer_in_order(PageRequest& request, std::string order) {
  const size_t device = request.device();
  const PageRequest::Window window = request.window();
  const auto limit = static_cast<size_t>(request.number("limit", 0, 100'000, 4000));
  if (request.has("order")) order = request.text("order");
  if (order != "bytes" && order != "byte_time")
    request.refuse("order is neither bytes nor byte_time");
  const bool has_columns = request.has("columns");
  const uint32_t wanted = request.columns();
  const Filter filter = request.filter();
  if (request.is_refused()) return request.refusal();
  const BlockTable& table = request.table();
  const PageFile::Taken taken = request.file().taken(device, filter);
  const auto lived = [&](uint32_t block) {
    const uint32_t from = std::max(table.start[block], window.from);
    return static_cast<double>(table.size_bytes[block]) *
           (std::min(table.end[block], window.to) - from);
  };
  const bool by_time = order == "byte_time";
  const Alive alive = best_alive(table, window, taken.get(), limit, [&](uint32_t a, uint32_t b) {
    if (by_time && lived(a) != lived(b)) return lived(a) > lived(b);
    if (!by_time && table.size_bytes[a] != table.size_bytes[b])
      return table.size_bytes[a] > table.size_bytes[b];
    return a < b;
  });
  uint64_t bytes = 0;
  for (const uint32_t block : alive.listed) bytes += table.size_bytes[block];
  Json header = {
      {"from", window.from},
      {"to", window.to},
      {"alive", {{"blocks", alive.blocks}, {"bytes", alive.bytes}}},
      {"left_out",
       {{"blocks", alive.blocks - alive.listed.size()}, {"bytes", alive.bytes - bytes}}}};
  Columns out;
  add_blocks(request, alive.listed, &out, &header);
  if (has_columns) {
    const KeyLevels* levels = request.file().levels(device, Dimension::kNone, filter);
    if (levels == nullptr) return later_answer();
    const auto columns = levels->columns(window.from, window.to, wanted);
    std::vector<uint32_t> begin, event;
    for (const KeyLevels::Column& column : columns)
      begin.push_back(column.from), event.push_back(column.range.most_at);
    begin.push_back(window.to);
    out.add("begin", begin), out.add("event", event);
    out.add("rest", rest_of(columns, table, alive.listed));
  }
  return columns_answer(out.finish(std::move(header)));
}

}  // namespace

PageAnswer blocks_answer(PageRequest& request) { return answer_in_order(request, "bytes"); }

PageAnswer space_time_answer(PageRequest& request) { return answer_in_order(request, "byte_time"); }

}  // namespace gpumemprof
