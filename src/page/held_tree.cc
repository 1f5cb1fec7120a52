#include "page/held_tree.h"

#include <map>

#include "report/user_code.h"
#include "trace/own_code.h"

namespace gpumemprof {

const char* frame_kind(std::string_view file, uint32_t line) {
  const bool is_label = line == 0 && file.starts_with('<') && file.ends_with('>');
  if (is_user_file(file)) return is_label ? "label" : "user";
  return is_native_source(file) ? "native" : "library";
}

namespace {

/// A tree being summed: children by name or number, in order of appearance.
struct Node {
  uint32_t parent = 0;
  uint32_t label = 0;
  uint32_t frame = kNone;
  uint64_t bytes = 0, self_bytes = 0, blocks = 0;
};

class Labels {
 public:
  uint32_t add(HeldTree::Label label) {
    const auto [known, is_new] = known_.try_emplace(label.text, list.size());
    if (is_new) list.push_back(std::move(label));
    return static_cast<uint32_t>(known->second);
  }
  std::vector<HeldTree::Label> list;

 private:
  absl::flat_hash_map<std::string, size_t> known_;
};

/// By calls: the stack table's nodes that hold something, or are above one that does. There a
/// caller has a lower number than its callee.
std::vector<Node> call_nodes(const HeldSums& sums, const Tables& tables, Labels* labels) {
  const StackTable& stacks = tables.stacks;
  absl::flat_hash_map<uint32_t, HeldSums::Sum> held;
  sums.each([&](uint32_t stack, uint32_t, const HeldSums::Sum& sum) {
    HeldSums::Sum& of = held[stack < stacks.stack_count() ? stack : 0];
    of.bytes += sum.bytes, of.blocks += sum.blocks;
  });
  std::vector<uint32_t> used;
  absl::flat_hash_map<uint32_t, uint32_t> place;
  for (const auto& [stack, sum] : held) {
    for (uint32_t node = stack; node != 0 && place.try_emplace(node, 0).second;
         node = stacks.node(node).parent)
      used.push_back(node);
  }
  std::ranges::sort(used);
  std::vector<Node> nodes(1);
  nodes[0].label = labels->add({"all"});
  absl::flat_hash_map<uint32_t, uint32_t> label_of;  // by frame
  for (const uint32_t at : used) {
    place[at] = static_cast<uint32_t>(nodes.size());
    const StackTable::Node& of = stacks.node(at);
    Node node;
    node.parent = of.parent == 0 ? 0 : place[of.parent];
    node.frame = at;
    const auto [label, is_new] = label_of.try_emplace(of.frame, 0);
    if (is_new) {
      const Frame& frame = stacks.frame(of.frame);
      const std::string_view file = tables.strings.get(frame.file);
      label->second = labels->add({.text = frame_text(tables, at),
                                   .kind = frame_kind(file, frame.line),
                                   .file = std::string(file),
                                   .line = frame.line});
    }
    node.label = label->second;
    nodes.push_back(node);
  }
  if (const auto unknown = held.find(0); unknown != held.end()) {
    place[0] = static_cast<uint32_t>(nodes.size());
    nodes.push_back({.label = labels->add({.text = std::string(kNoStack), .kind = "none"}), .frame = 0});
  }
  for (const auto& [stack, sum] : held) {
    Node& node = nodes[place[stack]];
    node.self_bytes += sum.bytes, node.bytes += sum.bytes, node.blocks += sum.blocks;
  }
  return nodes;
}

/// By names, one below the other: "layers", "3", "mlp".
std::vector<Node> name_nodes(const HeldSums& sums, const BlockTable& table, const Tables& tables,
                             Dimension by, Labels* labels) {
  std::vector<Node> nodes(1);
  nodes[0].label = labels->add({"all"});
  std::map<std::pair<uint32_t, std::string>, uint32_t> children;
  const auto child = [&](uint32_t parent, const std::string& name) {
    const auto [known, is_new] =
        children.try_emplace({parent, name}, static_cast<uint32_t>(nodes.size()));
    if (is_new) nodes.push_back({.parent = parent, .label = labels->add({name})});
    return known->second;
  };
  sums.each([&](uint32_t stack, uint32_t kind, const HeldSums::Sum& sum) {
    const std::string module = module_of(table.kinds[kind], stack, tables);
    uint32_t at = 0;
    if (by == Dimension::kCategory) at = child(0, category_name(table.kinds[kind].category));
    if (module.empty()) {
      at = child(at, "no module known");
    } else if (by == Dimension::kCategory) {
      at = child(at, printable_ascii(module));
    } else {
      for (size_t begin = 0; begin <= module.size();) {
        const size_t dot = std::min(module.find('.', begin), module.size());
        at = child(at, printable_ascii(module.substr(begin, dot - begin)));
        begin = dot + 1;
      }
    }
    nodes[at].self_bytes += sum.bytes, nodes[at].bytes += sum.bytes;
    nodes[at].blocks += sum.blocks;
  });
  return nodes;
}

/// The smallest bytes of a node so that `most` nodes are shown.
uint64_t least_shown(const std::vector<Node>& nodes, size_t most) {
  if (nodes.size() <= most) return 0;
  std::vector<uint64_t> bytes;
  for (const Node& node : nodes) bytes.push_back(node.bytes);
  std::ranges::nth_element(bytes, bytes.begin() + static_cast<ptrdiff_t>(most),
                           std::greater<uint64_t>());
  return bytes[most] + 1;
}

}  // namespace

HeldTree held_tree(const HeldSums& sums, const BlockTable& table, const Tables& tables,
                   Dimension by, size_t most_nodes) {
  Labels labels;
  std::vector<Node> nodes = by == Dimension::kStack ? call_nodes(sums, tables, &labels)
                                                    : name_nodes(sums, table, tables, by, &labels);
  for (size_t i = nodes.size(); i-- > 1;) {
    nodes[nodes[i].parent].bytes += nodes[i].bytes;
    nodes[nodes[i].parent].blocks += nodes[i].blocks;
  }
  HeldTree tree;
  const uint64_t least = least_shown(nodes, most_nodes);
  std::vector<uint32_t> place(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    const Node& node = nodes[i];
    if (i != 0 && node.bytes < least) {  // and so is all below it
      ++tree.left_out_nodes;
      if (nodes[node.parent].bytes >= least || node.parent == 0) tree.left_out_bytes += node.bytes;
      continue;
    }
    place[i] = static_cast<uint32_t>(tree.parent.size());
    tree.parent.push_back(i == 0 ? kNone : place[node.parent]);
    tree.label.push_back(node.label), tree.frame.push_back(node.frame);
    tree.bytes.push_back(node.bytes), tree.self_bytes.push_back(node.self_bytes);
    tree.blocks.push_back(node.blocks);
  }
  tree.labels = std::move(labels.list);
  return tree;
}

void add_labels(const std::vector<HeldTree::Label>& labels, nlohmann::ordered_json* header) {
  for (const char* member : {"labels", "kinds", "files", "lines"})
    (*header)[member] = nlohmann::ordered_json::array();
  for (const HeldTree::Label& label : labels) {
    (*header)["labels"].push_back(label.text), (*header)["kinds"].push_back(label.kind);
    (*header)["files"].push_back(label.file), (*header)["lines"].push_back(label.line);
  }
}

void add_tree(const HeldTree& tree, Columns* out, nlohmann::ordered_json* header) {
  out->add("parent", tree.parent), out->add("label", tree.label), out->add("stack", tree.frame);
  out->add("bytes", tree.bytes), out->add("self_bytes", tree.self_bytes);
  out->add("blocks", tree.blocks);
  add_labels(tree.labels, header);
  (*header)["total_bytes"] = tree.bytes[0];
  (*header)["total_blocks"] = tree.blocks[0];
  (*header)["left_out"] = {{"nodes", tree.left_out_nodes}, {"bytes", tree.left_out_bytes}};
}

}  // namespace gpumemprof
