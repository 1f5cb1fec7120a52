#include "report/html_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/size.h"
#include "report/advice_html.h"
#include "report/category_svg.h"
#include "report/category_text.h"
#include "report/driver_report.h"
#include "report/end_words.h"
#include "report/explanation.h"
#include "report/facts.h"
#include "report/flame_html.h"
#include "report/html_style.h"
#include "report/levels_svg.h"
#include "report/machine_text.h"
#include "report/pool_text.h"
#include "report/score_report.h"
#include "report/snapshot_html.h"
#include "report/snapshot_words.h"
#include "report/timeline_svg.h"
#include "report/user_code.h"
#include "report/words.h"

namespace gpumemprof {
namespace {

constexpr size_t kTemporaryRows = 20;
constexpr size_t kProcessRows = 200;
constexpr size_t kStacksInLine = 8;
constexpr size_t kInnermostRows = 6;

/// Every text of the recording goes through html_text() exactly where it enters the page.
class HtmlReport {
 public:
  HtmlReport(const Analysis& analysis, const Tables& tables, const HtmlOptions& options)
      : analysis_(analysis), tables_(tables), options_(options) {}

  std::string write() {
    const DeviceAnalysis* device = main_device(analysis_, tables_);
    out_ = fmt::format(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
        "'unsafe-inline'\">\n<title>Memory of {}</title>\n<style>{}</style></head><body>\n",
        html_text(analysis_.source.path), kHtmlStyle);
    write_answer(device);
    if (options_.advice) out_ += advice_section(*options_.advice);
    if (device) {
      out_ += device->snapshot ? levels_figure(analysis_, *device)
                               : timeline_figure(analysis_, *device, true);
      write_categories(*device);
      write_flames(*device);
      write_holders(*device, options_.holders);
      write_temporaries(*device);
    }
    for (const DeviceAnalysis& each : analysis_.devices) {
      if (each.pool)
        out_ +=
            fmt::format("<h2>The pool</h2><pre>{}</pre>", html_lines(pool_text(*each.pool, false)));
      if (each.snapshot) out_ += snapshot_sections(each, tables_, options_.working_folder);
    }
    write_other_devices(device);
    write_driver();
    write_devices();
    out_ += machine_section(analysis_);
    write_processes();
    out_ += fmt::format("<p class=\"dim\">{}, {}. {} in <code>{}</code>.</p>\n</body></html>\n",
                        format_plural(analysis_.events, "event"),
                        format_duration(analysis_.last_time_ns -
                                        std::min(analysis_.start_time_ns, analysis_.last_time_ns)),
                        format_bytes(analysis_.source.bytes), html_text(analysis_.source.path));
    return std::move(out_);
  }

 private:
  void write_answer(const DeviceAnalysis* device) {
    out_ += "<header>";
    for (const std::string& text : end_sentences(analysis_.ends, options_.working_folder))
      out_ += fmt::format("<p class=\"box lost\">{}</p>", html_text(text));
    if (device) {
      out_ += fmt::format("<h1>{}</h1><ol class=\"answer\">",
                          html_text(peak_sentence(analysis_, tables_, *device)));
      const std::vector<HolderLine> holders = group_by_line(device->holders_at_peak, tables_);
      for (size_t i = 0; i < std::min<size_t>(3, holders.size()); ++i) {
        out_ += fmt::format(
            "<li><b>{}</b> ({}) <code>{}</code></li>", format_bytes(holders[i].bytes),
            format_percent(holders[i].bytes, device->figures.peak_bytes),
            html_text(headline_text(tables_, holders[i].node, options_.working_folder)));
      }
      out_ += "</ol>";
    } else {
      out_ += "<h1>Nothing was allocated in this recording.</h1>";
    }
    if (device && device->snapshot) {
      out_ += fmt::format("<p>{}<br>{}</p>", html_text(reserved_sentence(*device->snapshot)),
                          html_text(replay_sentence(*device->snapshot)));
    }
    if (device) {
      out_ += fmt::format(
          "<p class=\"why\">{}</p>",
          html_text(explain_peak(analysis_, tables_, *device, options_.working_folder).text));
    }
    out_ += findings_section(analysis_, tables_);
    if (analysis_.score.value || !analysis_.ends.failure.empty()) {
      out_ += fmt::format("<p>{}</p>\n", html_text(score_sentence(analysis_.score)));
    }
    const std::string loss = loss_sentence(analysis_.loss);
    out_ += fmt::format("<p{}>{}</p>", is_complete(analysis_.loss) ? "" : " class=\"box lost\"",
                        html_text(loss));
    if (analysis_.loss.reasons.size() > kReasonsInSentence) {
      out_ += "<details><summary>What was lost or not seen</summary><ul>";
      for (const LossReason& reason : analysis_.loss.reasons) {
        out_ += fmt::format("<li>{}</li>", html_text(reason_text(reason)));
      }
      out_ += "</ul></details>";
    }
    for (const std::string& text : caveats(analysis_, tables_)) {
      out_ += fmt::format("<p class=\"box warn\">{}</p>", html_text(text));
    }
    out_ += "</header>\n";
  }

  /// Short paths to read, the whole ones as tooltips.
  std::string stack_text(uint32_t stack) const {
    std::string out = "<div class=\"stack\">";
    for (uint32_t node = stack; node != 0; node = tables_.stacks.node(node).parent) {
      const Frame& frame = tables_.stacks.frame(tables_.stacks.node(node).frame);
      const bool user = is_user_file(tables_.strings.get(frame.file));
      out += fmt::format("<p{} title=\"{}\">{}</p>\n", user ? " class=\"u\"" : "",
                         html_text(frame_text(tables_, node)),
                         html_text(headline_text(tables_, node, options_.working_folder)));
    }
    return out + "</div>";
  }

  void write_categories(const DeviceAnalysis& device) {
    out_ += category_figure(analysis_, device, tables_);
    const std::vector<std::string> lines = category_lines(device, tables_, 20);
    if (lines.empty()) return;
    out_ += "<details><summary>At the peak, by category, module and phase</summary><pre>";
    for (const std::string& text : lines) (out_ += html_text(text)) += '\n';
    out_ += "</pre></details>\n";
  }

  void write_flames(const DeviceAnalysis& device) {
    std::vector<FlameMoment> moments{{"at the peak", live_at_peak(device)}};
    if (!is_moment(device) && device.figures.live_bytes != 0) {
      moments.push_back({"what survived to the end", live_at_end(device)});
    }
    out_ += flame_section(moments, tables_);
  }

  /// Where a line of the user's led to: he rarely calls an allocator himself.
  void write_innermost(const HolderLine& holder) {
    if (holder.stacks.size() < 2) return;
    const std::vector<HolderLine> inner = group_by_innermost(holder.stacks, tables_);
    const size_t shown = std::min(kInnermostRows, inner.size());
    out_ += "<p class=\"dim\">";
    for (size_t i = 0; i < shown; ++i) {
      out_ +=
          fmt::format("{} in <code>{}</code><br>", format_bytes(inner[i].bytes),
                      html_text(headline_text(tables_, inner[i].node, options_.working_folder)));
    }
    if (inner.size() > shown) out_ += "and " + format_plural(inner.size() - shown, "more place");
    out_ += "</p>";
  }

  void write_holder(const HolderLine& holder, uint64_t peak_bytes) {
    const double share = peak_bytes == 0 ? 0
                                         : 100.0 * static_cast<double>(holder.bytes) /
                                               static_cast<double>(peak_bytes);
    out_ +=
        fmt::format("<tr><td class=\"n\">{}<br><span class=\"dim\">{}</span></td><td class=\"w\">",
                    format_bytes(holder.bytes), format_percent(holder.bytes, peak_bytes));
    const std::string name =
        html_text(headline_text(tables_, holder.node, options_.working_folder));
    const std::string blocks = format_plural(holder.count, "block");
    if (holder.node == 0) {
      out_ += fmt::format("<code>{}</code> <span class=\"dim\">{}</span>", name, blocks);
    } else {
      out_ +=
          fmt::format("<details><summary><code>{}</code> <span class=\"dim\">{}</span></summary>",
                      name, blocks);
      write_innermost(holder);
      const size_t shown = std::min(kStacksInLine, holder.stacks.size());
      for (size_t i = 0; i < shown; ++i) {
        if (holder.stacks.size() > 1) {
          out_ +=
              fmt::format("<p class=\"dim\">{} in {}:</p>", format_bytes(holder.stacks[i].bytes),
                          format_plural(holder.stacks[i].count, "block"));
        }
        out_ += stack_text(holder.stacks[i].stack);
      }
      if (holder.stacks.size() > shown) {
        out_ += fmt::format("<p class=\"dim\">and {} through the same line</p>",
                            format_plural(holder.stacks.size() - shown, "smaller stack"));
      }
      out_ += "</details>";
    }
    out_ += fmt::format("<div class=\"bar\"><i style=\"width:{:.1f}%\"></i></div></td></tr>\n",
                        std::min(share, 100.0));
  }

  void write_holders(const DeviceAnalysis& device, size_t limit) {
    const std::vector<HolderLine> holders = group_by_line(device.holders_at_peak, tables_);
    const size_t shown = std::min(limit, holders.size());
    out_ += "<h2>What was live at the peak, by line of your code</h2>\n<table><tbody>\n";
    uint64_t shown_bytes = 0;
    for (size_t i = 0; i < shown; ++i) {
      write_holder(holders[i], device.figures.peak_bytes);
      shown_bytes += holders[i].bytes;
    }
    out_ += "</tbody></table>\n";
    if (holders.size() > shown) {
      out_ += fmt::format("<p class=\"dim\">and {} with {}</p>\n",
                          format_plural(holders.size() - shown, "line"),
                          format_bytes(device.figures.peak_bytes - shown_bytes));
    }
  }

  void write_temporaries(const DeviceAnalysis& device) {
    if (device.temporary_count == 0) return;
    std::vector<Holder> as_holders;
    for (const Temporary& t : device.temporaries) as_holders.push_back({t.stack, t.bytes, t.count});
    std::vector<HolderLine> lines = group_by_line(as_holders, tables_);
    std::stable_sort(lines.begin(), lines.end(),
                     [](const HolderLine& a, const HolderLine& b) { return a.count > b.count; });
    const uint64_t allocs = action_count(device.figures, Action::kAlloc);
    out_ += fmt::format(
        "<h2>Temporaries: freed again within {}</h2>\n<p>{} of {} ({}), {} in all.</p>\n"
        "<table><thead><tr><th class=\"n\">times</th><th class=\"n\">bytes</th><th>line</th></tr>"
        "</thead><tbody>\n",
        format_duration(analysis_.temporary_ns), format_count(device.temporary_count),
        format_plural(allocs, "allocation"), format_percent(device.temporary_count, allocs),
        format_bytes(device.temporary_bytes));
    const size_t shown = std::min(kTemporaryRows, lines.size());
    for (size_t i = 0; i < shown; ++i) {
      out_ += fmt::format(
          "<tr><td class=\"n\">{}</td><td class=\"n\">{}</td><td "
          "class=\"w\"><code>{}</code></td></tr>\n",
          format_count(lines[i].count), format_bytes(lines[i].bytes),
          html_text(headline_text(tables_, lines[i].node, options_.working_folder)));
    }
    out_ += "</tbody></table>\n";
    if (lines.size() > shown) {
      out_ += fmt::format("<p class=\"dim\">and {}</p>\n",
                          format_plural(lines.size() - shown, "more line"));
    }
  }

  void write_other_devices(const DeviceAnalysis* main) {
    std::vector<const DeviceAnalysis*> others;
    for (const DeviceAnalysis& device : analysis_.devices) {
      if (&device != main && device.figures.peak_bytes != 0) others.push_back(&device);
    }
    if (others.empty()) return;
    std::stable_sort(others.begin(), others.end(),
                     [](const DeviceAnalysis* a, const DeviceAnalysis* b) {
                       return a->figures.peak_bytes > b->figures.peak_bytes;
                     });
    out_ += "<h2>Other devices and processes</h2>\n";
    const size_t shown = std::min(options_.other_devices, others.size());
    for (size_t i = 0; i < shown; ++i) {
      out_ += fmt::format("<details><summary>{}</summary>\n",
                          html_text(peak_sentence(analysis_, tables_, *others[i])));
      out_ += others[i]->snapshot ? levels_figure(analysis_, *others[i])
                                  : timeline_figure(analysis_, *others[i], false);
      write_holders(*others[i], 20);
      out_ += "</details>\n";
    }
    if (others.size() > shown) {
      out_ += fmt::format(
          "<p class=\"dim\">and {}, each with a smaller peak (all are in the table below)</p>\n",
          format_count(others.size() - shown));
    }
  }

  void write_driver() {
    const std::vector<std::string> lines = driver_lines(analysis_, tables_);
    if (lines.empty()) return;
    out_ += "<h2>What the CUDA driver handed out</h2>\n<pre>";
    for (const std::string& text : lines) out_ += html_text(text) + '\n';
    out_ += "</pre>\n";
  }

  void write_devices() {
    out_ +=
        "<h2>Devices</h2>\n<div class=\"scroll\"><table><thead><tr><th>device</th><th "
        "class=\"n\">peak</th>"
        "<th class=\"n\">at end</th><th class=\"n\">allocated</th><th class=\"n\">allocations</th>"
        "<th class=\"n\">per second</th><th class=\"n\">peak reserved</th></tr></thead><tbody>\n";
    std::vector<const DeviceAnalysis*> all;
    for (const DeviceAnalysis& sum : analysis_.sums) all.push_back(&sum);
    for (const DeviceAnalysis& device : analysis_.devices) all.push_back(&device);
    for (const DeviceAnalysis* each : all) {
      const DeviceAnalysis& device = *each;
      const Device& memory = device_at(tables_, device.device);
      const uint64_t allocs = action_count(device.figures, Action::kAlloc);
      out_ += fmt::format(
          "<tr><td>{}, {}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>"
          "<td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>\n",
          html_text(memory_name(device, tables_)),
          device.snapshot && !device.snapshot->is_recorded
              ? "a snapshot"
              : html_text(process_label(process_at(tables_, memory.process), 24)),
          format_bytes(device.figures.peak_bytes), format_bytes(device.figures.live_bytes),
          format_bytes(device.figures.total_bytes), format_count(allocs),
          format_count(static_cast<uint64_t>(rate_per_second(allocs, device))),
          peak_reserved_text(device).value_or("unknown"));
    }
    out_ += "</tbody></table></div>\n";
  }

  void write_processes() {
    if (tables_.processes.empty()) return;
    out_ +=
        "<h2>Processes</h2>\n<div class=\"scroll\"><table><thead><tr><th>process</th><th "
        "class=\"n\">events</th>"
        "<th "
        "class=\"n\">allocated</th><th>Python</th><th>stacks</th><th>end</th></tr></"
        "thead><tbody>\n";
    const size_t shown = std::min(kProcessRows, tables_.processes.size());
    for (size_t i = 0; i < shown; ++i) {
      const Process& process = tables_.processes[i];
      const ProcessAnalysis sums =
          i < analysis_.processes.size() ? analysis_.processes[i] : ProcessAnalysis{};
      out_ += fmt::format(
          "<tr><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td>{}</td><td>{}</td>"
          "<td>{}</td></tr>\n",
          html_text(process_label(process, 64)), format_count(sums.events),
          format_bytes(sums.alloc_bytes),
          process.python_version.empty() ? "none" : html_text(process.python_version),
          html_text(process.stacks),
          process.exited_cleanly ? "exit" : "killed, _exit, or still running");
    }
    out_ += "</tbody></table></div>\n";
    if (tables_.processes.size() > shown) {
      out_ += fmt::format("<p class=\"dim\">and {}</p>\n",
                          format_plural(tables_.processes.size() - shown, "more process"));
    }
  }

  const Analysis& analysis_;
  const Tables& tables_;
  const HtmlOptions& options_;
  std::string out_;
};

}  // namespace

std::string html_report(const Analysis& analysis, const Tables& tables,
                        const HtmlOptions& options) {
  return HtmlReport(analysis, tables, options).write();
}

}  // namespace gpumemprof
