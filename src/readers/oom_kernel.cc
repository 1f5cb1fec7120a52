// What the kernel, container runtimes and batch systems say of a process that was killed for want
// of the host's memory. The kernel's lines are those of mm/oom_kill.c since Linux 4.19.
#include <algorithm>
#include <cctype>
#include <string>

#include "readers/oom_message.h"

namespace gpumemprof {
namespace {

constexpr std::string_view kKilled = "Killed process ";
constexpr std::string_view kBare = "Killed";
constexpr std::string_view kContainer = "OOMKilled";
constexpr std::string_view kSlurmTask = "Out Of Memory";
constexpr std::string_view kSlurmStates[] = {"State: OUT_OF_MEMORY", "State=OUT_OF_MEMORY",
                                             "OUT_OF_ME+"};
/// SIGKILL, as shells and containers, Python, and torchrun write it.
constexpr std::string_view kShellCode = "137", kPythonCode = "-9", kSignal = "SIGKILL";

bool is_ascii_digit(char c) { return c >= '0' && c <= '9'; }

uint64_t number_at(std::string_view text) {
  uint64_t number = 0;
  for (size_t i = 0; i < text.size() && i < 18 && is_ascii_digit(text[i]); ++i)
    number = number * 10 + static_cast<uint64_t>(text[i] - '0');
  return number;
}

/// "Killed process 1234 (python) total-vm:9kB, anon-rss:8kB, file-rss:1kB, …".
OomMessage parse_kernel(std::string_view before, std::string_view text) {
  OomMessage message{.framework = "kernel", .backend = "host", .wording = OomWording::kKernel};
  message.is_own_limit = before.ends_with("Memory cgroup out of memory:");
  text.remove_prefix(kKilled.size());
  ProcessUse process{.pid = number_at(text), .in_use = {}};
  const size_t name = text.find('('), end = text.find(')');
  if (name != text.npos && end != text.npos && name < end)
    message.operation = std::string(text.substr(name + 1, std::min<size_t>(end - name - 1, 64)));
  constexpr std::string_view kResident = "anon-rss:";
  if (const size_t at = text.find(kResident); at != text.npos) {
    const uint64_t kib = number_at(text.substr(at + kResident.size()));
    process.in_use = exact_size(kib << 10);
    message.processes.push_back(std::move(process));
  }
  return message;
}

/// A shell writes "Killed", bash "FILE: line 3: 1234 Killed  python train.py"; nothing more is
/// known then. Elsewhere the word means nothing.
bool is_said_by_a_shell(std::string_view before, std::string_view text) {
  while (!before.empty() && before.back() == ' ') before.remove_suffix(1);
  if (before.ends_with("OOM") || before.ends_with(':')) return false;  // told by the longer words
  const size_t end = text.find_last_not_of(' ');
  if (end + 1 == kBare.size()) return true;
  return before.contains("line ") && !before.empty() && is_ascii_digit(before.back()) &&
         text.substr(kBare.size()).starts_with(' ');
}

std::string_view without_ends(std::string_view text, std::string_view letters) {
  const size_t begin = text.find_first_not_of(letters), end = text.find_last_not_of(letters);
  return begin == text.npos ? std::string_view() : text.substr(begin, end + 1 - begin);
}

/// "exit code 137", `"ExitCode": 137`, "exitcode  : -9 (pid: 5)", "Signal 9 (SIGKILL) received".
bool is_exit_by_sigkill(std::string_view before, std::string_view text) {
  constexpr std::string_view kBetween = " \t\"':=";
  if (text.starts_with(kSignal))
    return before.ends_with("Signal 9 (") || before.ends_with("died with <Signals.");
  const size_t digits = text.starts_with(kShellCode) ? kShellCode.size() : kPythonCode.size();
  if (text.size() > digits && (is_ascii_digit(text[digits]) || text[digits] == '.')) return false;
  std::string words(without_ends(before, kBetween));
  std::ranges::transform(words, words.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  constexpr size_t kExit = 16;  // "exited with code"
  const bool is_code = words.ends_with("code") || words.ends_with("status");
  return is_code && words.substr(words.size() - std::min(words.size(), kExit)).contains("exit");
}

/// "task 3: Out Of Memory" of srun, the states of seff, scontrol and sacct.
bool is_said_by_slurm(std::string_view before, std::string_view text) {
  if (text.starts_with(kSlurmTask))
    return without_ends(before, " ").ends_with(':') && before.contains("task");
  return std::ranges::any_of(kSlurmStates,
                             [&](std::string_view state) { return text.starts_with(state); });
}

/// `"OOMKilled": false` is what a runtime says of any other end.
bool is_killed_container(std::string_view text) {
  if (!text.starts_with(kContainer)) return false;
  text = without_ends(text.substr(kContainer.size()), " \t\"':=");
  return !text.starts_with("false") && !text.starts_with("False");
}

std::optional<OomMessage> parse_kill(std::string_view before, std::string_view text) {
  if (text.starts_with(kKilled)) {
    const bool is_oom = before.ends_with("ut of memory:");
    return is_oom ? std::optional(parse_kernel(before, text)) : std::nullopt;
  }
  OomMessage message{.framework = "kernel", .backend = "host", .wording = OomWording::kKilled};
  if (is_killed_container(text) || is_said_by_slurm(before, text) ||
      text.starts_with("oom_kill event") || text.starts_with("oom-kill event")) {
    message.is_own_limit = true;
    return message;
  }
  if (text.starts_with("killed by signal: Killed")) return message;
  const bool is_code = text.starts_with(kShellCode) || text.starts_with(kPythonCode) ||
                       text.starts_with(kSignal);
  if (is_code && is_exit_by_sigkill(before, text)) return message;
  if (text.starts_with(kBare) && is_said_by_a_shell(before, text)) return message;
  return std::nullopt;
}

}  // namespace

OomDialect kernel_oom_dialect() {
  const std::vector<std::string_view> words = {
      kBare,      kContainer,  "oom_kill event", "oom-kill event", "killed by signal: Killed",
      kSlurmTask, kShellCode,  kPythonCode,      kSignal,          kSlurmStates[0],
      kSlurmStates[1], kSlurmStates[2]};
  return {.keys = words, .beginnings = words, .parse = parse_kill};
}

}  // namespace gpumemprof
