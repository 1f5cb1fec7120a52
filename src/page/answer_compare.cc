// compare: the holders of two runs, or of two moments of one.
#include <algorithm>
#include <map>
#include <optional>

#include "analysis/compare/diff.h"
#include "page/answers.h"
#include "page/held_tree.h"
#include "report/describe/describe.h"
#include "report/json/document_json.h"
#include "trace/holder_lines.h"

namespace gpumemprof {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kDiffRows = 50;

/// Labels of two runs match without their folders: machines have files in different ones.
std::string aligned(const HeldTree::Label& label) {
  if (label.file.empty() || !label.text.starts_with(label.file)) return label.text;
  return std::string(aligned_file(label.file)) + label.text.substr(label.file.size());
}

/// Both trees as one: nodes match if their labels and all labels above match.
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
  const PageFile::Taken taken = file.taken(device, filter);
  HeldSums sums(table);
  table.each_live(moment, [&](uint32_t block) {
    if (taken == nullptr || (*taken)[block]) sums.add(block, table.kind_at(block, moment));
  });
  return held_tree(sums, table, file.tables(), by, most_nodes);
}

LiveMoment live_moment(const PageDevice& device, uint32_t moment, const CategoryMoment& told) {
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
  out.why_no_categories = table.is_told ? std::string() : device.why_no_categories;
  if (!table.is_told) return out;
  sums.each([&](uint32_t stack, uint32_t kind, const HeldSums::Sum& sum) {
    CategoryHolder holder = table.kinds[kind];
    holder.stack = stack, holder.bytes = sum.bytes, holder.count = sum.blocks;
    out.categories.push_back(holder);
  });
  return out;
}

/// The end of a step at the side's moment; null if none ends there.
const CategoryMoment* step_at(const ComparedSide& side) {
  const PageFile& file = *side.file;
  const uint32_t process = file.tables().devices[file.devices()[side.device].index].process;
  for (const CategoryMoment& told : file.facts().moments) {
    if (told.kind == CategoryMoment::kStepEnd && told.process == process &&
        file.moment_at(side.device, told.time_ns) == side.moment)
      return &told;
  }
  return nullptr;
}

/// A report compares whole runs, or ends of steps.
bool has_document(const ComparedSide& a, const ComparedSide& b) {
  if (a.moment.has_value() != b.moment.has_value()) return false;
  return a.moment ? step_at(a) && step_at(b) : a.file != b.file;
}

/// `at_step` backs the result for a side at a moment. No device if no report covers it.
DiffSide diff_side(const ComparedSide& side, WholeRun& whole, DeviceAnalysis* at_step) {
  const PageDevice& device = side.file->devices()[side.device];
  const DeviceAnalysis* known = whole.device(static_cast<uint16_t>(device.index));
  DiffSide out{&whole.analysis(), &whole.tables(), known, {}};
  if (!side.moment || known == nullptr) return out;
  const CategoryMoment& told = *step_at(side);
  const LiveMoment live = live_moment(device, *side.moment, told);
  *at_step = at_moment(*known, live);
  out.device = at_step;
  out.moment = diff_moment(*known, live, told.value);
  return out;
}

/// The device of B with the name of A's, otherwise its main one, otherwise its first.
size_t like(const PageDevice& device, const PageFile& other) {
  size_t best = 0;
  for (size_t d = 0; d < other.devices().size(); ++d) {
    if (other.devices()[d].is_main) best = d;
  }
  for (size_t d = 0; d < other.devices().size(); ++d) {
    if (other.devices()[d].name == device.name) return d;
  }
  return best;
}

}  // namespace

Json compare_document(const ComparedSide& a, const ComparedSide& b) {
  if (!has_document(a, b)) return nullptr;
  const auto whole_a = a.file->whole(), whole_b = b.file->whole();
  if (!whole_a || !whole_b) return nullptr;
  DeviceAnalysis at_step[2];
  const DiffSide sides[2] = {diff_side(a, **whole_a, &at_step[0]),
                             diff_side(b, **whole_b, &at_step[1])};
  if (!sides[0].device || !sides[1].device) return nullptr;
  const Diff diff = diff_runs(sides[0], sides[1], DiffStacks::kLive);
  return document_json(describe_diff(diff, {.rows = kDiffRows}));
}

PageAnswer compare_answer(PageRequest& request, PageFile& other, const DocumentOf& document_of) {
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
  request.need_steps(filter, other, other_device);
  if (request.is_refused()) return request.refusal();
  const ComparedSide sides[2] = {{&file, device, asked("event", event)},
                                 {&other, other_device, asked("other_event", other_event)}};
  std::optional<Json> document = Json();
  if (has_document(sides[0], sides[1])) document = document_of(sides[0], sides[1]);
  if (!document) return later_answer();
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
                 {"document", *document}};
  add_labels(merged.labels, &header);
  Columns out;
  out.add("parent", merged.parent), out.add("label", merged.label);
  out.add("bytes_a", merged.bytes_a), out.add("bytes_b", merged.bytes_b);
  out.add("blocks_a", merged.blocks_a), out.add("blocks_b", merged.blocks_b);
  return columns_answer(out.finish(std::move(header)));
}

}  // namespace gpumemprof
