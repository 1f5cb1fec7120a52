// Why the kernel killed or refused shared memory: the host's memory, not a GPU's.
#include "analysis/oom_message/oom_explainer.h"
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
  if (message.wording == OomWording::kKernel || message.is_own_limit) {
    const bool is_kernel = message.wording == OomWording::kKernel;
    verdict.cause = message.is_own_limit ? OomCause::kOwnLimit : OomCause::kWantOfMemory;
    verdict.summary = std::string(!message.is_own_limit ? "The host ran out of memory"
                                  : is_kernel ? "The container reached its limit of host memory"
                                              : "The container or job reached its limit of host "
                                                "memory") +
                      ", and the kernel killed a process. No GPU is involved.";
    verdict.reasons.push_back(is_kernel && !message.processes.empty() ? victim_text(message)
                                                                      : "The line has no sizes.");
  } else {
    verdict.summary =
        "SIGKILL ended the process. The kernel sends it when host memory runs out; users and "
        "schedulers can, too.";
    verdict.reasons.push_back(
        "The text says no more. Look in the kernel's log for \"Killed process\".");
    verdict.advice = {{"Read the kernel's log.", "dmesg | grep -i 'killed process'"},
                      {"In a container, count the kills by its limit.",
                       "grep oom_kill /sys/fs/cgroup/memory.events"}};
  }
  verdict.advice.insert(
      verdict.advice.end(),
      {{"See which lines hold the host's memory: record the program, then analyze the recording.",
        kRecordCommand},
       {"Use fewer DataLoader workers or a smaller prefetch_factor: each worker holds its own "
        "batches and a copy of what it changes.",
        ""},
       {message.is_own_limit ? "Or raise the memory limit of the container or job."
                             : "Or use a host with more memory, or start fewer processes on it.",
        ""}});
  return verdict;
}

OomVerdict explain_shared_memory_oom() {
  return {.cause = OomCause::kOwnLimit,
          .summary =
              "/dev/shm is full: it holds the tensors that processes share. No GPU is involved.",
          .reasons = {"The message has no sizes."},
          .advice = {
              {"See how large /dev/shm is and what is in it.", "df -h /dev/shm; ls -l /dev/shm"},
              {"Remove files of processes that have ended: torch_4321_* is of process 4321.", ""},
              {"Give the container more shared memory (a value to try, not computed).",
               "docker run --shm-size=8g"},
              {"Use fewer DataLoader workers or a smaller prefetch_factor: each batch that waits "
               "is in /dev/shm.",
               ""},
              {"See whether a run leaves files there: record the program, then analyze the "
               "recording.",
               kRecordCommand}}};
}

}  // namespace gpumemprof
