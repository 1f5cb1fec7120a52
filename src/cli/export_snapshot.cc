#include "cli/export_snapshot.h"

#include "cli/commands.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "readers/torch_snapshot/read.h"
#include "report/snapshot_export.h"

namespace gpumemprof {

int export_as_snapshot(const std::vector<std::string>& paths, const std::string& output_path) {
  const std::string subject = paths.size() == 1 ? paths[0] : "";
  if (paths.size() != 1 || !is_torch_snapshot(paths[0])) {
    return report_error(
        subject, {ErrorCode::kUnsupported,
                  "only a snapshot of PyTorch's allocator can be written as one: a recording "
                  "holds no segments and no blocks of them",
                  std::nullopt});
  }
  Progress progress("exporting");
  auto snapshot = read_torch_snapshot(
      paths[0], {.on_progress = [&](double done) { progress.update(done / 2); }});
  if (!snapshot) return report_error(subject, snapshot.error());
  auto output = Output::open(output_path, paths);
  if (!output) return report_error("", output.error());
  const auto sink = [&](std::string_view bytes) { return output->write(bytes); };
  const Status done =
      export_snapshot(*snapshot, sink, [&](double share) { progress.update(0.5 + share / 2); });
  if (!done) return report_output_error(*output, done.error());
  if (auto closed = output->close(); !closed) return report_output_error(*output, closed.error());
  return kExitOk;
}

}  // namespace gpumemprof
