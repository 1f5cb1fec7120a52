// Why shared memory was refused: /dev/shm has a size of its own.
#include "analysis/oom_message/oom_verdict.h"

namespace gpumemprof {

OomVerdict explain_shared_memory_oom() {
  OomVerdict verdict{
      .cause = OomCause::kOwnLimit,
      .summary = "/dev/shm is full: it holds the tensors that processes share. No GPU is involved."};
  verdict.reasons.push_back("The message has no sizes.");
  verdict.advice = {
      {"See how large /dev/shm is and what is in it.", "df -h /dev/shm; ls -l /dev/shm"},
      {"Remove files of processes that have ended: torch_4321_* is of process 4321.", ""},
      {"Give the container more shared memory (a value to try, not computed).",
       "docker run --shm-size=8g"},
      {"Use fewer DataLoader workers or a smaller prefetch_factor: each batch that waits is in "
       "/dev/shm.",
       ""},
      {"See whether a run leaves files there: record the program, then analyze the recording.",
       kRecordCommand}};
  return verdict;
}

}  // namespace gpumemprof
