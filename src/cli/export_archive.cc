#include "cli/export.h"

#include <algorithm>
#include <cstdio>
#include <optional>

#include "base/file.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/temporary_folder.h"
#include "input/input.h"
#include "report/export/event_export.h"
#include "report/export/perfetto_archive.h"

namespace gpumemprof {
namespace {

constexpr size_t kCopyBytes = 1 << 20;

/// A trace whose length is known once it is whole.
struct WrittenTrace {
  std::string name;
  std::unique_ptr<File> file;
  uint64_t size_bytes = 0;
};

Result<WrittenTrace> write_trace(EventSource& source, const std::string& file,
                                 const std::string& place, PerfettoArchive* archive) {
  auto made = open_file(place, FileMode::kCreate);
  if (!made) return std::unexpected(made.error());
  WrittenTrace trace{.name = "", .file = std::move(*made)};
  Progress progress("exporting");
  const auto done = export_perfetto(
      source,
      [&](std::string_view piece) -> Status {
        auto written = trace.file->write_at(trace.size_bytes, piece.data(), piece.size());
        trace.size_bytes += piece.size();
        return written;
      },
      [&](double share) { progress.update(share); });
  if (!done) return std::unexpected(done.error());
  if (trace.size_bytes > kMostTarBytes)
    return fail(ErrorCode::kUnsupported, "its trace is larger than the 8 GiB of an archive's member");
  trace.name = archive->add(source, file);
  return trace;
}

Status copy(WrittenTrace& trace, Output* output) {
  if (auto done = output->write(tar_header(trace.name, trace.size_bytes)); !done) return done;
  std::string piece(kCopyBytes, '\0');
  for (uint64_t at = 0; at < trace.size_bytes;) {
    const auto got = trace.file->read_at(at, piece.data(), piece.size());
    if (!got) return std::unexpected(got.error());
    if (*got == 0) return fail(ErrorCode::kSystem, trace.file->path() + ": was cut meanwhile");
    if (auto done = output->write(std::string_view(piece).substr(0, *got)); !done) return done;
    at += *got;
  }
  return output->write(tar_padding(trace.size_bytes));
}

Status end_archive(const PerfettoArchive& archive, Output* output) {
  const std::string manifest = archive.manifest(GPUMEMPROF_VERSION);
  std::string end = tar_header(kManifestName, manifest.size()) + manifest;
  end += tar_padding(manifest.size()) + tar_end();
  if (auto done = output->write(end); !done) return done;
  return output->close();
}

}  // namespace

int export_perfetto_archive(const std::vector<std::string>& paths, const std::string& output_path,
                            const std::shared_ptr<Anonymizer>& names) {
  auto folder = TemporaryFolder::make("gpumemprof-export-");
  if (!folder) return report_error("", folder.error());
  std::optional<Output> output;  // once there is something to write
  PerfettoArchive archive;
  int worst = kExitOk;
  size_t written = 0;
  for (const std::string& path : paths) {
    for (const std::string& file : parts_of(path)) {
      const auto left_out = [&](const Error& error) {
        worst = std::max(worst, kExitToolFailed);
        report_error(file, error);
      };
      auto input = open_input({file});
      if (input && names) input->anonymize(names);
      auto source = input ? input->events() : std::unexpected(input.error());
      if (!source) {
        left_out(source.error());
        continue;
      }
      const std::string place = folder->path() + "/" + std::to_string(written);
      auto trace = write_trace(**source, names ? "trace" : file, place, &archive);
      if (!trace) {
        left_out(trace.error());
        continue;
      }
      if (written++ == 0) {
        auto opened = Output::open(output_path, paths);
        if (!opened) return report_error("", opened.error());
        output.emplace(std::move(*opened));
      }
      if (auto done = copy(*trace, &*output); !done)
        return report_output_error(*output, done.error());
      std::remove(place.c_str());
      worst = std::max(worst, say_losses(file, (*source)->loss()));
    }
  }
  if (written == 0) return kExitBadInput;
  if (auto done = end_archive(archive, &*output); !done)
    return report_output_error(*output, done.error());
  return worst;
}

}  // namespace gpumemprof
