// gpumemprof explain-oom: what the text of an out-of-memory error says.
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output.h"
#include "input/input.h"
#include "readers/bfc_dump/read.h"
#include "report/oom_report.h"
#include "report/words.h"

namespace gpumemprof {
namespace {

struct ExplainArguments {
  std::string path = "-";
  std::string format;
  std::string output;
  std::string color = "auto";
};

constexpr size_t kPieceBytes = 256 << 10;

Result<OomLog> scan(int fd) {
  OomScanner scanner;
  std::string piece(kPieceBytes, '\0');
  for (;;) {
    const ssize_t count = read(fd, piece.data(), piece.size());
    if (count == 0) return scanner.finish();
    if (count > 0) {
      scanner.feed(std::string_view(piece).substr(0, static_cast<size_t>(count)));
    } else if (errno != EINTR) {
      return fail(ErrorCode::kSystem, std::string("cannot be read: ") + strerror(errno));
    }
  }
}

Result<OomLog> scan_file(const std::string& path) {
  if (path == "-") return scan(STDIN_FILENO);
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return fail(errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kSystem, strerror(errno));
  }
  struct stat status = {};
  Result<OomLog> log = fstat(fd, &status) == 0 && S_ISDIR(status.st_mode)
                           ? fail(ErrorCode::kUsage,
                                  "is a folder, not a text file; gpumemprof analyze reads recordings")
                           : scan(fd);
  close(fd);
  return log;
}

/// A memory dump as a message that says nothing but the state of the pool.
Result<OomLog> read_dump(const std::string& path) {
  auto file = open_file(path, FileMode::kRead);
  if (!file) return std::unexpected(file.error());
  auto size = (*file)->size();
  if (!size) return std::unexpected(size.error());
  auto pool = read_bfc_dump(**file);
  if (!pool) return std::unexpected(pool.error());
  OomLog log{.bytes_read = *size};
  log.messages.push_back(message_of_dump(std::move(*pool)));
  return log;
}

int explain(const ExplainArguments& arguments) {
  const std::string name = arguments.path == "-" ? "standard input" : arguments.path;
  Result<OomLog> log =
      is_bfc_dump(arguments.path) ? read_dump(arguments.path) : scan_file(arguments.path);
  if (!log) return report_error(name, log.error());
  if (log->messages.empty()) {
    if (arguments.path != "-" && input_kind({arguments.path}) == InputKind::kSnapshot) {
      return report_error(name, {ErrorCode::kUsage,
                                 "is a memory snapshot of PyTorch, not a message: gpumemprof "
                                 "analyze explains its out-of-memory events"});
    }
    return report_error(name, {ErrorCode::kBadInput,
                               "no out-of-memory message found in " +
                                   format_count(log->bytes_read) + " bytes: " +
                                   (log->analyze_command.empty()
                                        ? "pass what PyTorch, TensorFlow, the kernel or the "
                                          "container printed, from \"out of memory\" on"
                                        : "the program was recorded, see " +
                                              printable(log->analyze_command))});
  }
  const std::string format = report_format(arguments.format, arguments.output);
  const std::string text =
      format == "json" ? oom_json(*log, name)
                       : fitted_to_terminal(
                             oom_text(*log, name, report_color(arguments.color, arguments.output)),
                             arguments.output);
  return write_output(text, arguments.output, {arguments.path});
}

}  // namespace

void add_explain_oom_command(CLI::App& app, CommandContext& context) {
  auto arguments = std::make_shared<ExplainArguments>();
  CLI::App* command =
      app.add_subcommand("explain-oom", "explain an out-of-memory message, and what to do");
  add_defaulted(
      command, "path", "FILE|-", arguments->path,
      "a log or other text with the message, or a TensorFlow memory dump; - is standard input");
  add_format_option(command, &arguments->format, false);
  add_output_option(command, &arguments->output);
  add_color_option(command, &arguments->color);
  command->callback([arguments, &context] { context.exit_code = explain(*arguments); });
}

}  // namespace gpumemprof
