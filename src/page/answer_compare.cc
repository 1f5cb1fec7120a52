// compare: two runs, or two moments of one, who held what in each.
#include <algorithm>
#include <map>

#include "analysis/pass/diff.h"
#include "page/answers.h"
#include "page/held_tree.h"
#include "report/describe/describe_diff.h"
#include "report/json/document_json.h"
#include "trace/holder_lines.h"

namespace gpumemprof {
namespace {

using Json = nlohmann::ordered_json;

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
  const PageFile::Taken taken = file.taken(device, filter);
  HeldSums sums(table);
  table.each_live(moment, [&](uint32_t block) {
    if (taken == nullptr || (*taken)[block]) sums.add(block, table.kind_at(block, moment));
  });
  return held_tree(sums, table, file.tables(), by, most_nodes);
}

/// The device of B that is called as A's, else its main one, else its first.
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

Json compare_document(PageFile& file, size_t device, PageFile& other, size_t other_device) {
  const auto a = file.whole(), b = other.whole();
  if (!a || !b) return nullptr;
  const auto side = [](WholeRun& whole, const PageDevice& of) {
    return DiffSide{&whole.analysis(), &whole.tables(),
                    whole.device(static_cast<uint16_t>(of.index)), {}};
  };
  const DiffSide sides[2] = {side(**a, file.devices()[device]),
                             side(**b, other.devices()[other_device])};
  if (!sides[0].device || !sides[1].device) return nullptr;
  return document_json(describe_diff(diff_runs(sides[0], sides[1], headline_node), {}));
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
  const uint32_t event = request.moment("event", a.table->peak);
  const auto other_event = static_cast<uint32_t>(
      request.number("other_event", 0, b.table->moments() - 1, b.table->peak));
  const auto most_nodes = static_cast<size_t>(request.number("limit", 1, 100'000, 20'000));
  const Filter filter = request.filter();
  if (request.is_refused()) return request.refusal();
  const std::optional<Json> document = document_of(device, other_device);
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
