#include "report/render/flame_html.h"

#include <absl/container/flat_hash_map.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/size.h"
#include "report/render/html.h"
#include "report/words.h"

namespace gpumemprof {
namespace {

constexpr uint64_t kLeastShare = 500;  // a box of less than 1/500 of the whole is not drawn alone
constexpr size_t kMostDepth = 200;
constexpr int kRowPixels = 20;
constexpr std::array kGroupings = {FlameGrouping::kStack, FlameGrouping::kModule,
                                   FlameGrouping::kCategory};

constexpr const char* kFlameStyle = R"css(
.flame{--f0:#ffd9a8;--f1:#ffe9a8;--f2:#ffc9b3;--f3:#d9e8b8;--f4:#c9e0f2;--f5:#e6d2f0;--frest:#e2e6ea}
@media (prefers-color-scheme:dark){.flame{--f0:#6b4517;--f1:#635414;--f2:#6e3522;--f3:#445a1e;--f4:#1f4c6b;
--f5:#52376b;--frest:#363d45}}
.flame input{margin:0 .3em 0 0;vertical-align:middle}.flame label{margin-right:1em;white-space:nowrap}
.flame .graph{display:none;position:relative;margin-top:.6em}
.flame .graph div{position:absolute;height:19px;overflow:hidden;text-overflow:ellipsis;white-space:nowrap;
font:12px/19px system-ui,sans-serif;padding-left:3px;border-right:1px solid var(--bg);border-radius:2px;cursor:default}
.flame .graph div span{display:none}
.flame .graph div:hover,.flame .graph div:focus{outline:2px solid var(--top);z-index:1}
.flame .graph div:hover span,.flame .graph div:focus span{display:block;position:fixed;left:0;
right:0;bottom:0;z-index:2;padding:8px 12px;background:var(--bg);border-top:2px solid var(--top);
white-space:normal;font-size:14px;overflow-wrap:anywhere}
.f0{background:var(--f0)}.f1{background:var(--f1)}.f2{background:var(--f2)}.f3{background:var(--f3)}
.f4{background:var(--f4)}.f5{background:var(--f5)}.rest{background:var(--frest)}
)css";

struct Node {
  uint32_t name = 0;
  uint64_t bytes = 0, own = 0, count = 0;
  std::vector<uint32_t> children;
};

/// The paths as a tree; node 0 is the whole.
std::vector<Node> tree_of(const FlamePaths& paths) {
  std::vector<Node> nodes(1);
  absl::flat_hash_map<std::pair<uint32_t, uint32_t>, uint32_t> known;  // parent, name
  for (const FlamePath& path : paths.paths) {
    uint32_t at = 0;
    nodes[0].bytes += path.bytes, nodes[0].count += path.count;
    for (size_t i = 0; i < std::min(path.frames.size(), kMostDepth); ++i) {
      const auto next = static_cast<uint32_t>(nodes.size());
      const auto [found, added] = known.try_emplace({at, path.frames[i]}, next);
      if (added) {
        nodes.emplace_back().name = path.frames[i];
        nodes[at].children.push_back(next);
      }
      at = found->second;
      nodes[at].bytes += path.bytes, nodes[at].count += path.count;
    }
    nodes[at].own += path.bytes;
  }
  for (Node& node : nodes) {
    std::ranges::stable_sort(node.children, std::greater<>(),
                             [&](uint32_t child) { return nodes[child].bytes; });
  }
  return nodes;
}

class Graph {
 public:
  explicit Graph(const FlamePaths& paths)
      : paths_(paths), nodes_(tree_of(paths)), total_(nodes_[0].bytes) {}

  std::string draw(std::string_view classes) {
    struct Open {
      uint32_t node;
      uint64_t left;
      size_t depth;
    };
    std::vector<Open> open{{0, 0, 0}};
    size_t deepest = 0;
    while (!open.empty()) {
      const Open now = open.back();
      open.pop_back();
      const Node& node = nodes_[now.node];
      deepest = std::max(deepest, now.depth);
      box(now.node == 0 ? "all" : paths_.names.get(node.name), node, now.left, now.depth);
      uint64_t left = now.left, rest = 0, rest_count = 0;
      size_t rests = 0;
      for (uint32_t child : node.children) {
        const Node& within = nodes_[child];
        if (within.bytes < total_ / kLeastShare) {
          rest += within.bytes, rest_count += within.count, ++rests;
          continue;
        }
        open.push_back({child, left, now.depth + 1});
        left += within.bytes;
      }
      if (rests == 0) continue;
      deepest = std::max(deepest, now.depth + 1);
      const Node small{.bytes = rest, .own = rest, .count = rest_count};
      box(fmt::format("{} smaller", format_count(rests)), small, left, now.depth + 1, true);
    }
    return fmt::format("<div class=\"graph {}\" style=\"height:{}px\">\n{}</div>\n", classes,
                       (deepest + 1) * kRowPixels, out_);
  }

 private:
  double percent(uint64_t bytes) const {
    return total_ == 0 ? 0 : 100.0 * static_cast<double>(bytes) / static_cast<double>(total_);
  }
  void box(std::string_view name, const Node& node, uint64_t left, size_t depth,
           bool is_rest = false) {
    const std::string text = html_text(name);
    const std::string colour =
        is_rest ? "rest" : fmt::format("f{}", depth == 0 ? 4 : (depth + node.name) % 6);
    out_ += fmt::format(
        "<div tabindex=\"0\" class=\"{}\" data-b=\"{}\" data-o=\"{}\" "
        "style=\"left:{:.4f}%;width:{:.4f}%;top:{}px\">{}<span>{}: {} ({}) in {}</span></div>\n",
        colour, node.bytes, node.own, percent(left), percent(node.bytes), depth * kRowPixels, text,
        text, format_bytes(node.bytes), format_percent(node.bytes, total_),
        format_plural(node.count, "block"));
  }

  const FlamePaths& paths_;
  const std::vector<Node> nodes_;
  const uint64_t total_;
  std::string out_;
};

}  // namespace

std::string flame_figure(const std::vector<FlameMoment>& moments, const Tables& tables) {
  if (moments.empty()) return {};
  std::string style = kFlameStyle, switches, graphs;
  for (size_t m = 0; m < moments.size() && moments.size() > 1; ++m) {
    switches += fmt::format(
        "<input type=\"radio\" name=\"fm\" id=\"fm{0}\"{1}><label for=\"fm{0}\">{2}</label>\n", m,
        m == 0 ? " checked" : "", html_text(moments[m].title));
  }
  if (!switches.empty()) switches += "<br>\n";
  for (size_t g = 0; g < kGroupings.size(); ++g) {
    switches += fmt::format(
        "<input type=\"radio\" name=\"fg\" id=\"fg{0}\"{1}><label for=\"fg{0}\">by {2}</label>\n",
        g, g == 0 ? " checked" : "", grouping_name(kGroupings[g]));
    for (size_t m = 0; m < moments.size(); ++m) {
      const std::string classes = fmt::format("m{} g{}", m, g);
      style += fmt::format("{}#fg{}:checked~.m{}.g{}{{display:block}}\n",
                           moments.size() > 1 ? fmt::format("#fm{}:checked~", m) : "", g, m, g);
      const auto paths = flame_paths(moments[m].live, kGroupings[g], tables);
      if (paths) {
        graphs += Graph(*paths).draw(classes);
      } else {
        graphs += fmt::format("<p class=\"graph {}\">{}</p>\n", classes,
                              html_text(paths.error().message));
      }
    }
  }
  return fmt::format(
      "<div class=\"flame\"><style>{}</style>\n{}{}<p class=\"dim\">{}A box is as wide as its "
      "bytes. Point at it, or tap it, for its figures.</p></div>\n",
      style, switches, graphs,
      moments.size() == 1 ? "Live " + html_text(moments[0].title) + ". " : "");
}

std::string flame_page(std::string_view heading, const std::vector<FlameMoment>& moments,
                       const Tables& tables) {
  return html_page("Flame graph", fmt::format("<header><h1>{}</h1></header>\n{}",
                                              html_text(heading), flame_figure(moments, tables)));
}

}  // namespace gpumemprof
