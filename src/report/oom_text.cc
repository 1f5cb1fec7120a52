#include <fmt/format.h>

#include "report/describe/sections.h"
#include "report/oom_report.h"
#include "report/render/text.h"
#include "report/words.h"

namespace gpumemprof {
namespace {

class OomText {
 public:
  OomText(const OomLog& log, const std::string& path, bool color)
      : log_(log), path_(path), color_(color) {}

  std::string write() {
    for (size_t i = 0; i < log_.messages.size(); ++i) {
      if (i != 0) line();
      write_message(log_.messages[i]);
    }
    if (log_.more_messages != 0) {
      line();
      line(fmt::format("and {} that differ and are not shown",
                       format_plural(log_.more_messages, "more message")));
    }
    return std::move(out_);
  }

 private:
  void line(std::string_view text = {}) { (out_ += text) += '\n'; }
  std::string paint(std::string_view code, std::string_view text) const {
    return color_ ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : std::string(text);
  }

  std::string place(const OomMessage& message) const {
    std::string text = fmt::format("{}, line {}", printable(path_), format_count(message.line));
    if (message.rank) text += fmt::format(", rank {}", *message.rank);
    if (message.times > 1) text += fmt::format(", {} times", format_count(message.times));
    return text;
  }

  void write_message(const OomMessage& message) {
    const OomVerdict verdict = explain_oom(message, log_);
    line(paint("1", verdict.summary));
    std::string asked = printable(message.backend);
    if (message.device) asked += fmt::format(" device {}", *message.device);
    if (!message.allocator.empty()) asked += ", " + printable(message.allocator);
    if (message.requested) asked += ": " + message.requested->text + " refused";
    const bool is_of_kernel = message.backend == "host";
    if (!message.operation.empty())
      asked += (is_of_kernel ? ": killed " : " to ") + printable(message.operation);
    line(fmt::format("  {} ({})", asked, place(message)));
    if (const TracebackLine& at = message.asked_at; !at.file.empty()) {
      line(printable(fmt::format("  Asked for at {}:{} {}{}{}", at.file, at.line, at.function,
                                 at.code.empty() ? "" : ": ", at.code)));
    }
    for (const std::string& reason : verdict.reasons) line("  " + reason);
    write_figures(message);
    if (message.pool) {
      for (const std::string& text : text_lines(pool_section(*message.pool), {.color = color_}))
        line(text);
    }
    if (!verdict.elsewhere.empty()) {
      line(paint("1", "Elsewhere on the device"));
      for (const std::string& text : verdict.elsewhere) line("  " + text);
    }
    line(paint("1", "What to do, in this order"));
    for (size_t i = 0; i < verdict.advice.size(); ++i) {
      line(fmt::format("  {}. {}", i + 1, verdict.advice[i].text));
      if (!verdict.advice[i].command.empty())
        line("       " + printable(verdict.advice[i].command));
    }
  }

  void write_figures(const OomMessage& message) {
    const std::vector<OomFigure> figures = oom_figures(message);
    if (figures.empty()) return;
    line(paint("1", "What the numbers mean"));
    for (const OomFigure& figure : figures) {
      line(fmt::format("  {:>10}  {}", figure.size.text, printable(figure.meaning)));
    }
    for (const ProcessUse& process : message.processes) {
      line(fmt::format("  {:>10}  in use by process {}", process.in_use.text, process.pid));
    }
  }

  const OomLog& log_;
  const std::string& path_;
  bool color_;
  std::string out_;
};

}  // namespace

std::string oom_text(const OomLog& log, const std::string& path, bool color) {
  return OomText(log, path, color).write();
}

}  // namespace gpumemprof
