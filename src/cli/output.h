// Where a command's result goes: standard output or a file, with every failure noticed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "trace/event_source.h"

namespace gpumemprof {

/// An open file, written without a buffer of its own: hand it large pieces. Not copyable.
class Output {
 public:
  /// `path` empty or "-": standard output. Errors: kUsage where the path is one of `inputs` or a
  /// recording, kSystem where it cannot be made.
  static Result<Output> open(const std::string& path, const std::vector<std::string>& inputs);
  Output(Output&& other) noexcept;
  Output& operator=(Output&&) = delete;
  ~Output();

  /// Errors: kSystem; the message names the file.
  Status write(std::string_view text);
  /// Must be called for the last errors of the file system to be seen.
  Status close();
  /// True once the reader of a pipe has gone: no reason to complain, but not a success either.
  bool reader_is_gone() const { return reader_is_gone_; }

 private:
  Output(int fd, std::string name) : fd_(fd), name_(std::move(name)) {}
  int fd_;
  std::string name_;
  bool reader_is_gone_ = false;
};

/// Of a terminal: COLUMNS, else as it says itself, else `otherwise`; from 40 to 400.
size_t terminal_columns(int fd, size_t otherwise);
/// Of the terminal that shows what goes to `path`; 0: none does.
size_t report_columns(const std::string& path);
/// A text that goes to `path`, its lines no longer than those of the terminal, where it is one.
std::string fitted_to_terminal(std::string text, const std::string& path);

/// Opens, writes and closes; says what failed. The exit code.
int write_output(std::string_view text, const std::string& path,
                 const std::vector<std::string>& inputs);

/// The time now as strftime() writes it: of this place, or UTC.
std::string time_text(const char* format, bool is_utc = false);

/// What an output lacks, in the words of `analyze`, on stderr. The exit code: where it lacks events
/// it is not what was asked for, whoever lost them.
int say_losses(const std::string& subject, const Loss& loss);

/// The exit code for an error of writing to `output`; says it on stderr unless the pipe's reader
/// left.
int report_output_error(const Output& output, const Error& error);

}  // namespace gpumemprof
