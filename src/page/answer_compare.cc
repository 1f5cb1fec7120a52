// compare: two runs, or two moments of one, who held what in each.
#include <algorithm>
#include <map>
#include <optional>

#include "analysis/compare/diff.h"
#include "page/answers.h"
#include "page/held_tree.h"
#include "report/describe/describe_diff.h"
#include "report/json/document_json.h"
#include "trace/holder_lines.h"

namespace gpumemprof {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kDiffRows = 50;

/// What tells a label of one run from those of another: machines have files in other folders.
std::string aligned(const HeldTree::Label& label) {
  if (label.file.empty() || !label.text.starts_with(label.file)) return label.text;
  return std::string(aligned_file(label.file)) + label.text.substr(label.file.size());
}

/// Both trees as one: nodes are the same where their labels and those above them are.
struct MergedTree {
  std::vector<uint32_t> parent, label;
  std::vector<uint64_t> bytes_a, bytes_b, blocks_a, blocks_b;
  std::vector<HeldTree::Label> labels;

  void add(const HeldTree& tree, std::vector<uint64_t>* bytes, std::vector<uint64_t>* blocks) {
    std::vector<uint32_t> place(tree.parent.size());
    for (size_t i = 0; i < tree.parent.size(); ++i) {
      const uint32_t above = i == 0 ? kNone : place[tree.parent[i]];
      const HeldTree::Label& of = tree.labels[tree.label[i]];
      const auto [known_label, is_new_label] =
          label_of_.try_emplace(aligned(of), static_cast<uint32_t>(labels.size()));
      if (is_new_label) labels.push_back(of);
      const auto [known, is_new] =
          node_of_.try_emplace({above, known_label->second}, static_cast<uint32_t>(parent.size()));
      if (is_new) {
        parent.push_back(above), label.push_back(known_label->second);
        for (auto* column : {&bytes_a, &bytes_b, &blocks_a, &blocks_b}) column->push_back(0);
      }
      place[i] = known->second;
      (*bytes)[place[i]] += tree.bytes[i], (*blocks)[place[i]] += tree.blocks[i];
    }
  }

 private:
  std::map<std::string, uint32_t> label_of_;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> node_of_;
};

HeldTree tree_at(PageFile& file, size_t device, uint32_t moment, Dimension by, const Filter& filter,
                 size_t most_nodes) {
  const BlockTable& table = *file.devices()[device].table;
  const std::vector<uint8_t>* taken = file.taken(device, filter);
  HeldSums sums(table);
  table.each_live(moment, [&](uint32_t block) {
    if (taken == nullptr || (*taken)[block]) sums.add(block, table.kind_at(block, moment));
  });
  return held_tree(sums, table, file.tables(), by, most_nodes);
}

/// A device as a comparison takes it: the whole run, or the end of a step.
struct ComparedDevice {
  DeviceAnalysis at_step;  // where a step ends at the moment
  DiffSide side;           // without a device where there is nothing to say of the moment
};

LiveMoment live_moment(const PageDevice& device, uint32_t moment,
                       const CategoryMoment& told) {
  const BlockTable& table = *device.table;
  LiveMoment out{.is_reached = true, .time_ns = told.time_ns, .event = told.event};
  std::map<uint32_t, Holder> live, total;
  const auto add = [&](std::map<uint32_t, Holder>* holders, uint32_t block) {
    Holder& holder = (*holders)[table.stack[block]];
    holder.stack = table.stack[block];
    holder.bytes += table.size_bytes[block], ++holder.count;
  };
  HeldSums sums(table);
  table.each_live(moment, [&](uint32_t block) {
    add(&live, block);
    sums.add(block, table.kind_at(block, moment));
    out.live_bytes += table.size_bytes[block], ++out.live_count;
  });
  for (uint32_t block = table.earlier_blocks; block < table.started_by(moment); ++block)
    add(&total, block);
  for (const auto& [stack, holder] : live) out.holders.push_back(holder);
  for (const auto& [stack, holder] : total) out.totals.push_back(holder);
  for (auto* holders : {&out.holders, &out.totals})
    std::ranges::stable_sort(*holders, std::ranges::greater(), &Holder::bytes);
  out.why_no_categories = table.is_told ? std::string() : why_no_categories(device);
  if (!table.is_told) return out;
  sums.each([&](uint32_t stack, uint32_t kind, const HeldSums::Sum& sum) {
    CategoryHolder holder = table.kinds[kind];
    holder.stack = stack, holder.bytes = sum.bytes, holder.count = sum.blocks;
    out.categories.push_back(holder);
  });
  return out;
}

/// Into `out`, which must not move afterwards.
void find_side(PageFile& file, size_t index, std::optional<uint32_t> moment, ComparedDevice* out) {
  const PageDevice& device = file.devices()[index];
  out->side = {&file.analysis(), &file.tables(), moment ? nullptr : device.analysis, {}};
  if (!moment || device.analysis == nullptr) return;
  const uint32_t process = file.tables().devices[device.index].process;
  for (const CategoryMoment& told : file.analysis().moments) {
    if (told.kind != CategoryMoment::kStepEnd || told.process != process ||
        file.moment_at(index, told.time_ns) != *moment)
      continue;
    const LiveMoment live = live_moment(device, *moment, told);
    out->at_step = at_moment(*device.analysis, live);
    out->side.device = &out->at_step;
    out->side.moment = diff_moment(*device.analysis, live, told.value);
    return;
  }
}

/// The device of B that is called as A's, else its main one, else its first.
size_t like(const PageDevice& device, const PageFile& other) {
  size_t best = 0;
  const DeviceAnalysis* main = main_device(other.analysis(), other.tables());
  for (size_t d = 0; d < other.devices().size(); ++d) {
    if (other.devices()[d].analysis == main) best = d;
  }
  for (size_t d = 0; d < other.devices().size(); ++d) {
    if (other.devices()[d].name == device.name) return d;
  }
  return best;
}

}  // namespace

PageAnswer compare_answer(PageRequest& request, PageFile& other) {
  const size_t device = request.device();
  const Dimension by = request.by(Dimension::kStack);
  if (by != Dimension::kStack && by != Dimension::kModule && by != Dimension::kCategory)
    request.refuse("by is none of stack, module, category");
  PageFile& file = request.file();
  const PageDevice& a = file.devices()[device];
  const auto other_device = static_cast<size_t>(
      request.number("other_device", 0, other.devices().size() - 1, like(a, other)));
  const PageDevice& b = other.devices()[other_device];
  const auto asked = [&](const char* name, uint32_t moment) {
    return request.has(name) ? std::optional(moment) : std::nullopt;
  };
  const uint32_t event = request.moment("event", a.table->peak);
  const auto other_event = static_cast<uint32_t>(
      request.number("other_event", 0, b.table->moments() - 1, b.table->peak));
  const auto most_nodes = static_cast<size_t>(request.number("limit", 1, 100'000, 20'000));
  const Filter filter = request.filter();
  if (request.is_refused()) return request.refusal();
  MergedTree merged;
  merged.add(tree_at(file, device, event, by, filter, most_nodes), &merged.bytes_a,
             &merged.blocks_a);
  merged.add(tree_at(other, other_device, other_event, by, filter, most_nodes), &merged.bytes_b,
             &merged.blocks_b);
  Json header = {{"event", event},
                 {"other_event", other_event},
                 {"other_device", other_device},
                 {"total_a", merged.bytes_a[0]},
                 {"total_b", merged.bytes_b[0]},
                 {"document", nullptr}};
  // A report compares whole runs, or ends of steps.
  ComparedDevice side_a, side_b;
  find_side(file, device, asked("event", event), &side_a);
  find_side(other, other_device, asked("other_event", other_event), &side_b);
  const bool is_same = &file == &other && !side_a.side.moment;
  if (!is_same && side_a.side.device && side_b.side.device &&
      side_a.side.moment.has_value() == side_b.side.moment.has_value()) {
    const Diff diff = diff_runs(side_a.side, side_b.side, headline_node);
    header["document"] = document_json(describe_diff(diff, {.rows = kDiffRows}));
  }
  for (const char* member : {"labels", "kinds", "files", "lines"}) header[member] = Json::array();
  for (const HeldTree::Label& label : merged.labels) {
    header["labels"].push_back(label.text), header["kinds"].push_back(label.kind);
    header["files"].push_back(label.file), header["lines"].push_back(label.line);
  }
  Columns out;
  out.add("parent", merged.parent), out.add("label", merged.label);
  out.add("bytes_a", merged.bytes_a), out.add("bytes_b", merged.bytes_b);
  out.add("blocks_a", merged.blocks_a), out.add("blocks_b", merged.blocks_b);
  return columns_answer(out.finish(std::move(header)));
}

}  // namespace gpumemprof
