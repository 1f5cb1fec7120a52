// How much work an input may make: a reader that is fast on most files and takes hours on one is as
// broken as one that crashes. Counted are the basic blocks that are entered
// (-fsanitize-coverage=trace-pc), as many on every machine, never seconds.
#pragma once

#include <stddef.h>
#include <stdint.h>

/// So far, of all code but this.
extern uint64_t fuzz_work;

/// For one input: aborts at its end where it made more work than so much a byte.
class WorkLimit {
 public:
  explicit WorkLimit(size_t bytes);
  ~WorkLimit();

 private:
  size_t bytes_;
  uint64_t before_;
};
