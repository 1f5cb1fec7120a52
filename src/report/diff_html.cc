#include <fmt/format.h>

#include <algorithm>

#include "base/size.h"
#include "report/diff_report.h"
#include "report/facts.h"
#include "report/html_style.h"
#include "report/user_code.h"
#include "report/words.h"

namespace gpumemprof {
namespace {

constexpr size_t kHeadlineRows = 3;
constexpr const char* kDiffStyle = R"css(
:root{--run-a:#b35c00;--run-b:#1f5fbf}
@media (prefers-color-scheme:dark){:root{--run-a:#f0a35e;--run-b:#7fb0f5}}
svg .a,svg .b{fill:none;stroke-width:1.5;vector-effect:non-scaling-stroke}
svg .a{stroke:var(--run-a)}svg .b{stroke:var(--run-b)}
.legend span{margin-right:1.2em}.legend i{display:inline-block;width:1em;height:3px;vertical-align:middle}
.legend .a{background:var(--run-a)}.legend .b{background:var(--run-b)}
.up{color:var(--peak)}
@media (max-width:600px){.diff tr{display:grid;grid-template-columns:repeat(4,1fr)}
.diff td:last-child,.diff th:last-child{grid-column:1/-1}}
)css";

/// Every text of the inputs goes through html_text() exactly where it enters the page.
class DiffHtml {
 public:
  DiffHtml(const Diff& diff, const DiffOptions& options) : diff_(diff), options_(options) {}

  std::string write() {
    out_ = fmt::format(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
        "'unsafe-inline'\">\n<title>{}</title>\n<style>{}{}</style></head><body>\n",
        html_text(diff_sentence(diff_)), kHtmlStyle, kDiffStyle);
    write_answer();
    if (!is_of_steps()) out_ += diff_figure(diff_);
    write_lines();
    write_groups("By category", "category", diff_.by_category);
    if (is_of_steps()) {
      write_groups("By module", "module", diff_.by_module);
    } else {
      write_layers();
    }
    write_stacks();
    out_ += fmt::format(
        "<p class=\"dim\">A: {} in <code>{}</code>. B: {} in <code>{}</code>.</p>\n",
        format_plural(diff_.a.analysis->events, "event"), html_text(diff_.a.analysis->source.path),
        format_plural(diff_.b.analysis->events, "event"), html_text(diff_.b.analysis->source.path));
    return std::move(out_ += "</body></html>\n");
  }

 private:
  void write_answer() {
    out_ +=
        fmt::format("<header><h1>{}</h1><ol class=\"answer\">", html_text(diff_sentence(diff_)));
    for (size_t i = 0; i < std::min(kHeadlineRows, diff_.by_line.size()); ++i) {
      const DiffRow& row = diff_.by_line[i];
      if (row.peak_delta() == 0) break;
      out_ += fmt::format("<li><b>{}</b> <code>{}</code></li>",
                          change_text(row.a.peak_bytes, row.b.peak_bytes),
                          html_text(row_text(diff_, row, options_.working_folder)));
    }
    out_ += fmt::format("</ol><p>{}</p>", html_text(diff_end_sentence(diff_)));
    for (const std::string& text : diff_caveats(diff_)) {
      out_ += fmt::format("<p class=\"box warn\">{}</p>", html_text(text));
    }
    out_ += "</header>\n";
  }

  bool is_of_steps() const { return diff_.a.moment && diff_.b.moment; }

  void write_figures(const DiffRow& row) {
    out_ += fmt::format(
        "<tr><td class=\"n{}\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>",
        row.peak_delta() > 0 ? " up" : "", change_text(row.a.peak_bytes, row.b.peak_bytes),
        format_bytes(row.a.peak_bytes), format_bytes(row.b.peak_bytes));
    if (!is_of_steps()) {
      out_ += fmt::format("<td class=\"n\">{}</td>", change_text(row.a.end_bytes, row.b.end_bytes));
    }
  }

  void begin_table(const char* title, const char* what) {
    out_ += fmt::format(
        "<h2>{}{}</h2>\n<div class=\"scroll\"><table class=\"diff\"><thead><tr><th "
        "class=\"n\">change</th><th class=\"n\">A</th><th class=\"n\">B</th>{}<th>{}</th></tr>"
        "</thead><tbody>\n",
        title, when_text(diff_), is_of_steps() ? "" : "<th class=\"n\">at the end</th>", what);
  }

  /// Rows that differ, at most as many as are asked for; calls cell(row) for the last column.
  template <class Cell>
  void write_rows(const DiffRows& rows, size_t limit, Cell cell) {
    size_t changed = 0;
    for (const DiffRow& row : rows) {
      if (row.peak_delta() == 0 && row.end_delta() == 0) continue;
      if (++changed > limit) continue;
      write_figures(row);
      out_ += "<td class=\"w\">";
      cell(row);
      out_ += "</td></tr>\n";
    }
    out_ += "</tbody></table></div>\n";
    if (changed == 0) out_ += "<p>no difference</p>\n";
    if (changed > limit) {
      out_ += fmt::format("<p class=\"dim\">and {} more</p>\n", format_count(changed - limit));
    }
  }

  /// `node` of the row's tables is what it is called by.
  std::string name_of(const DiffRow& row, uint32_t node) const {
    DiffRow shown = row;
    shown.node = node;
    const Change change = row.change();
    const bool is_news = change == Change::kAppeared || change == Change::kVanished;
    return fmt::format(
        "<code>{}</code>{}", html_text(row_text(diff_, shown, options_.working_folder)),
        is_news ? fmt::format(" <span class=\"dim\">{}</span>", change_name(change)) : "");
  }

  void write_lines() {
    begin_table("By line of your code", "line");
    write_rows(diff_.by_line, options_.rows,
               [&](const DiffRow& row) { out_ += name_of(row, row.node); });
  }

  void write_groups(const char* title, const char* what, const DiffRows& rows) {
    if (rows.empty()) return;
    begin_table(title, what);
    write_rows(rows, options_.rows,
               [&](const DiffRow& row) { out_ += html_text(group_text(diff_, row)); });
  }

  void write_layers() {
    if (diff_.by_layer.empty()) return;
    begin_table("By layer", "layer");
    write_rows(diff_.by_layer, options_.rows,
               [&](const DiffRow& row) { out_ += html_text(layer_text(diff_, row)); });
  }

  void write_stacks() {
    begin_table("By stack", "stack");
    write_rows(diff_.by_stack, options_.rows, [&](const DiffRow& row) {
      const Tables& tables = *(row.from_b ? diff_.b : diff_.a).tables;
      out_ += fmt::format("<details><summary>{}</summary><div class=\"stack\">",
                          name_of(row, headline_node(tables, row.node)));
      for (uint32_t node = row.node; node != 0; node = tables.stacks.node(node).parent) {
        const Frame& frame = tables.stacks.frame(tables.stacks.node(node).frame);
        out_ += fmt::format("<p{}>{}</p>",
                            is_user_file(tables.strings.get(frame.file)) ? " class=\"u\"" : "",
                            html_text(headline_text(tables, node, options_.working_folder)));
      }
      out_ += "</div></details>";
    });
  }

  const Diff& diff_;
  const DiffOptions& options_;
  std::string out_;
};

}  // namespace

std::string diff_html(const Diff& diff, const DiffOptions& options) {
  return DiffHtml(diff, options).write();
}

}  // namespace gpumemprof
