// Why the kernel killed: the host's memory, not a GPU's.
#include "analysis/oom_message/oom_verdict.h"
#include "base/size.h"

namespace gpumemprof {
namespace {

std::string victim_text(const OomMessage& message) {
  const ProcessUse& process = message.processes[0];
  std::string text = "It killed process " + std::to_string(process.pid);
  if (!message.operation.empty()) text += " (" + message.operation + ")";
  return text + ", which held " + format_bytes(process.in_use.bytes) +
         " of anonymous memory (anon-rss).";
}

}  // namespace

OomVerdict explain_kernel_oom(const OomMessage& message) {
  OomVerdict verdict;
  if (message.wording == OomWording::kKernel) {
    verdict.cause = message.is_own_limit ? OomCause::kOwnLimit : OomCause::kWantOfMemory;
    verdict.summary = message.is_own_limit
                          ? "The container reached its limit of host memory, and the kernel killed "
                            "a process. No GPU is involved."
                          : "The host ran out of memory, and the kernel killed a process. No GPU "
                            "is involved.";
    verdict.reasons.push_back(message.processes.empty() ? "The line has no sizes."
                                                        : victim_text(message));
  } else if (message.is_own_limit) {
    verdict.cause = OomCause::kOwnLimit;
    verdict.summary =
        "The container or job reached its limit of host memory, and the kernel killed a process. "
        "No GPU is involved.";
    verdict.reasons.push_back("The line has no sizes.");
  } else {
    verdict.summary =
        "SIGKILL ended the process. The kernel sends it when host memory runs out; users and "
        "schedulers can, too.";
    verdict.reasons.push_back(
        "The text says no more. Look in the kernel's log for \"Killed process\".");
    verdict.advice.push_back({"Read the kernel's log.", "dmesg | grep -i 'killed process'"});
    verdict.advice.push_back({"In a container, count the kills by its limit.",
                              "grep oom_kill /sys/fs/cgroup/memory.events"});
  }
  verdict.advice.push_back(
      {"See which lines hold the host's memory: record the program, then "
       "analyze the recording.",
       kRecordCommand});
  verdict.advice.push_back(
      {"Use fewer DataLoader workers or a smaller prefetch_factor: each worker holds its own "
       "batches and a copy of what it changes.",
       ""});
  verdict.advice.push_back({message.is_own_limit
                                ? "Or raise the memory limit of the container or job."
                                : "Or use a host with more memory, or start fewer processes on it.",
                            ""});
  return verdict;
}

}  // namespace gpumemprof
