#include "report/snapshot_html.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/size.h"
#include "report/finding_words.h"
#include "report/levels_svg.h"
#include "report/snapshot_words.h"
#include "report/user_code.h"
#include "report/words.h"

namespace gpumemprof {
namespace {

constexpr size_t kPinningRows = 20;

std::string pinning_table(const std::vector<PinningStack>& pinning, const Tables& tables,
                          std::string_view folder) {
  std::string out =
      "<div class=\"scroll\"><table><thead><tr><th class=\"n\">pinned alone</th><th "
      "class=\"n\">pinned with others</th><th class=\"n\">live</th><th "
      "class=\"n\">segments</th><th>line</th></tr></thead><tbody>\n";
  for (size_t i = 0; i < std::min(kPinningRows, pinning.size()); ++i) {
    const PinningStack& by = pinning[i];
    out += fmt::format(
        "<tr><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td "
        "class=\"n\">{}</td><td class=\"w\"><code>{}</code></td></tr>\n",
        format_bytes(by.alone_bytes), format_bytes(by.pinned_bytes - by.alone_bytes),
        format_bytes(by.live_bytes), format_count(by.segments),
        html_text(headline_text(tables, headline_node(tables, by.stack), folder)));
  }
  out += "</tbody></table></div>\n";
  if (pinning.size() > kPinningRows) {
    out += fmt::format("<p class=\"dim\">and {}</p>\n",
                       format_plural(pinning.size() - kPinningRows, "more stack"));
  }
  return out;
}

std::string trials_table(const std::vector<OomTrial>& trials) {
  if (trials.empty()) return "";
  std::string out =
      "<div class=\"scroll\"><table><thead><tr><th>settings</th><th>would it have fitted</th><th "
      "class=\"n\">reserved at most</th></tr></thead><tbody>\n";
  for (const OomTrial& trial : trials) {
    out += fmt::format("<tr><td><code>{}</code></td><td>{}</td><td class=\"n\">{}</td></tr>\n",
                       html_text(trial.settings), trial.fits ? "yes" : "no",
                       format_bytes(trial.peak_reserved_bytes));
  }
  return out + "</tbody></table></div>\n";
}

}  // namespace

std::string snapshot_sections(const DeviceAnalysis& device, const Tables& tables,
                              std::string_view folder) {
  const SnapshotDevice& snapshot = *device.snapshot;
  const std::string name = html_text(device_name(device_at(tables, device.device)));
  std::string out;
  for (const OomExplanation& oom : snapshot.ooms) {
    out += fmt::format("<h2>Out of memory on {}</h2>\n", name);
    for (const std::string& text : oom_details(oom, snapshot, tables, folder)) {
      out += fmt::format("<p>{}</p>\n", html_text(text));
    }
    out += trials_table(oom.trials);
  }
  if (!snapshot.is_consistent || !snapshot.at_peak) return out;
  out += fmt::format("<h2>Segments of {} at the peak</h2>\n", name);
  out += segments_figure(*snapshot.at_peak);
  if (!snapshot.at_peak->pinning.empty()) {
    out += "<h2>What causes fragmentation at the peak</h2>\n";
    out += pinning_table(snapshot.at_peak->pinning, tables, folder);
  }
  return out;
}

/// After the title, in sentences.
static std::string details_html(const Finding& finding) {
  std::string out;
  if (finding.kind != "leak") return out;
  for (const std::string& text : finding_details(finding)) out += ". " + html_text(text);
  return out;
}

std::string findings_section(const Analysis& analysis, const Tables& tables) {
  std::string out;
  for (const Finding& finding : analysis.findings) {
    out += fmt::format(
        "<p class=\"box {}\">{}, {}: {}.{}</p>\n",
        finding.severity == Severity::kCritical  ? "lost"
        : finding.severity == Severity::kWarning ? "warn"
                                                 : "note",
        severity_name(finding.severity), html_text(device_name(device_at(tables, finding.device))),
        html_text(finding.title) + details_html(finding),
        finding.fix.empty() ? std::string() : " Fix: " + html_text(finding.fix) + ".");
  }
  return out;
}

}  // namespace gpumemprof
