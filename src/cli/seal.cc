// gpumemprof seal: compresses recordings whose `run` was killed before it could.
#include "recording/seal.h"

#include <cstdio>
#include <memory>

#include "base/size.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "report/words.h"
#include "run/folder.h"

namespace gpumemprof {
namespace {

Result<int> seal_folder(const std::string& folder) {
  auto ours = is_recording_folder(folder);
  if (!ours) return std::unexpected(ours.error());
  if (!*ours) return fail(ErrorCode::kBadInput, "is not a recording: name a folder that run wrote");
  FolderSealer sealer(folder, {});
  Status done;
  {
    Progress progress("sealing " + folder);
    done = sealer.finish([&](double share) { progress.update(share); });
  }
  if (!done) return std::unexpected(done.error());
  const SealTotals& totals = sealer.totals();
  if (totals.files == 0 && totals.left.empty()) {
    std::printf("%s: nothing is left to compress\n", printable(folder).c_str());
    return kExitOk;
  }
  std::printf("%s: %llu file%s, %llu events, %s -> %s\n", folder.c_str(),
              static_cast<unsigned long long>(totals.files), totals.files == 1 ? "" : "s",
              static_cast<unsigned long long>(totals.events),
              format_bytes(totals.bytes_before).c_str(), format_bytes(totals.bytes_after).c_str());
  for (const std::string& why : totals.left) {
    report_error("", {ErrorCode::kBadInput, why});
  }
  return totals.left.empty() ? kExitOk : kExitBadInput;
}

int seal(const std::vector<std::string>& folders) {
  int exit_code = kExitOk;
  for (const std::string& folder : folders) {
    auto done = seal_folder(folder);
    const int code = done ? *done : report_error(folder, done.error());
    if (code != kExitOk) exit_code = code;
  }
  return exit_code;
}

}  // namespace

void add_seal_command(CLI::App& app, CommandContext& context) {
  auto folders = std::make_shared<std::vector<std::string>>();
  CLI::App* command = app.add_subcommand("seal", "compress what a killed run left uncompressed");
  add_value(command, "folder", "DIR...", *folders, "folders of recordings")->required();
  command->callback([folders, &context] { context.exit_code = seal(*folders); });
}

}  // namespace gpumemprof
