#include "cli/output.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string_view>

#include "base/error_text.h"
#include "cli/commands.h"
#include "report/describe/facts.h"
#include "report/words.h"

namespace gpumemprof {
namespace {

// A text under such a name would be opened by what cannot read it.
constexpr std::string_view kOtherFormats[] = {".pdf",  ".png", ".jpg",  ".jpeg", ".gif", ".doc",
                                              ".docx", ".xls", ".xlsx", ".ppt",  ".pptx"};

bool is_same_file(const std::string& a, const std::string& b) {
  struct stat first, second;
  return stat(a.c_str(), &first) == 0 && stat(b.c_str(), &second) == 0 &&
         first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

std::unexpected<Error> failed(const std::string& name) {
  return fail(ErrorCode::kSystem, name + ": cannot write: " + strerror(errno));
}

}  // namespace

Result<Output> Output::open(const std::string& path, const std::vector<std::string>& inputs) {
  signal(SIGPIPE, SIG_IGN);  // a closed pipe is an error to handle, as a full disk is
  if (path.empty() || path == "-") {
    struct stat st;
    if (fstat(STDOUT_FILENO, &st) != 0) return failed("standard output");
    return Output(STDOUT_FILENO, "standard output");
  }
  for (const std::string& input : inputs) {
    if (is_same_file(path, input))
      return fail(ErrorCode::kUsage, path + ": is the input file; choose another --output");
  }
  if (path.ends_with(".gmp") || path.ends_with(".gms")) {
    return fail(ErrorCode::kUsage, path + ": is the name of a recording; choose another --output");
  }
  for (std::string_view other : kOtherFormats) {
    if (path.ends_with(other)) {
      return fail(ErrorCode::kUsage, path + ": cannot write " + std::string(other) +
                                         ": a report is .txt, .json or .html; gpumemprof export "
                                         "writes other formats");
    }
  }
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) return failed(path);
  return Output(fd, path);
}

Output::Output(Output&& other) noexcept
    : fd_(other.fd_), name_(std::move(other.name_)), reader_is_gone_(other.reader_is_gone_) {
  other.fd_ = -1;
}

Output::~Output() { (void)close(); }

Status Output::write(std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(fd_, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      reader_is_gone_ = errno == EPIPE;
      return failed(name_);
    }
    text.remove_prefix(static_cast<size_t>(n));
  }
  return {};
}

Status Output::close() {
  const int fd = fd_;
  fd_ = -1;
  if (fd < 0 || fd == STDOUT_FILENO) return {};
  if (::close(fd) != 0) return failed(name_);
  return {};
}

size_t terminal_columns(int fd, size_t otherwise) {
  size_t columns = 0;
  if (const char* told = std::getenv("COLUMNS")) {
    const std::string_view text = told;
    std::from_chars(text.data(), text.data() + text.size(), columns);
  }
  winsize size = {};
  if (columns == 0 && ioctl(fd, TIOCGWINSZ, &size) == 0) columns = size.ws_col;
  return std::clamp<size_t>(columns == 0 ? otherwise : columns, 40, 400);
}

size_t report_columns(const std::string& path) {
  const bool is_shown = (path.empty() || path == "-") && isatty(STDOUT_FILENO) == 1;
  return is_shown ? terminal_columns(STDOUT_FILENO, 100) : 0;
}

std::string fitted_to_terminal(std::string text, const std::string& path) {
  const size_t columns = report_columns(path);
  return columns == 0 ? text : fitted(text, columns);
}

int write_output(std::string_view text, const std::string& path,
                 const std::vector<std::string>& inputs) {
  auto output = Output::open(path, inputs);
  if (!output) return report_error("", output.error());
  if (auto done = output->write(text); !done) return report_output_error(*output, done.error());
  if (auto done = output->close(); !done) return report_output_error(*output, done.error());
  return kExitOk;
}

std::string time_text(const char* format, bool is_utc) {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  (is_utc ? gmtime_r : localtime_r)(&now, &parts);
  char text[64];
  return {text, std::strftime(text, sizeof text, format, &parts)};
}

int report_output_error(const Output& output, const Error& error) {
  if (output.reader_is_gone()) return kExitToolFailed;
  return report_error("", error);
}

int say_losses(const std::string& subject, const Loss& loss) {
  if (is_complete(loss)) return kExitOk;
  report_error(subject, {ErrorCode::kSystem, loss_sentence(loss)});
  return loss.has_every_event() ? kExitOk : kExitToolFailed;
}

namespace {
const char* g_tool_name = "gpumemprof";
}  // namespace

const char* tool_name() { return g_tool_name; }
bool is_tfmemprof() { return std::string_view(g_tool_name) == "tfmemprof"; }
void set_tool_name(const char* name) { g_tool_name = name; }

int report_error(const std::string& subject, const Error& error) {
  std::string name = subject;
  while (name.size() > 1 && name.back() == '/') name.pop_back();
  std::string text = std::string(tool_name()) + ": ";
  // Readers of several files name the file themselves.
  if (!name.empty() && !error.message.starts_with(name + ": ")) text += printable(subject) + ": ";
  text += printable(text_of(error));
  std::fprintf(stderr, "%s\n", text.c_str());
  return error.code == ErrorCode::kSystem ? kExitToolFailed : kExitBadInput;
}

}  // namespace gpumemprof
