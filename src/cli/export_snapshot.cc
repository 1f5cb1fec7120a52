#include "cli/export.h"

#include <cstdio>

#include "analysis/analyze.h"
#include "cli/commands.h"
#include "cli/input.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "report/export/event_export.h"
#include "report/words.h"

namespace gpumemprof {

namespace {

/// One line for what the read file has and the written one has not.
void say_what_is_missing(const std::string& path, const AllocatorSnapshot& snapshot) {
  std::string missing;
  const auto add = [&](const std::string& what) {
    missing += (missing.empty() ? "" : "; ") + what;
  };
  for (const LossReason& part : snapshot.not_kept)
    add(std::to_string(part.events) + ' ' + part.reason);
  for (const LossReason& loss : snapshot.loss.reasons)
    add((loss.is_counted() ? std::to_string(loss.events) + ' ' : "") + loss.reason);
  if (missing.empty()) return;
  std::fprintf(stderr, "%s: %s: not written: %s\n", tool_name(), printable(path).c_str(),
               printable(missing).c_str());
}

}  // namespace

int export_as_snapshot(const std::vector<std::string>& paths, const std::string& output_path,
                       bool seal) {
  const std::string subject = paths.size() == 1 ? paths[0] : "";
  auto input = open_input_showing_progress(paths, seal);
  if (!input) return report_error(subject, input.error());
  const auto history = allocator_history(*input);
  if (!history) return report_error(subject, history.error());
  const AllocatorSnapshot* snapshot = history->get();
  Progress progress("exporting");
  auto output = Output::open(output_path, paths);
  if (!output) return report_error("", output.error());
  const auto sink = [&](std::string_view bytes) { return output->write(bytes); };
  const Status done =
      export_snapshot(*snapshot, sink, [&](double share) { progress.update(share); });
  if (!done) return report_output_error(*output, done.error());
  if (auto closed = output->close(); !closed) return report_output_error(*output, closed.error());
  say_what_is_missing(paths[0], *snapshot);
  return snapshot->loss.has_every_event() ? kExitOk : kExitToolFailed;
}

}  // namespace gpumemprof
