#include "work_limit.h"

#include <stdio.h>
#include <stdlib.h>

namespace {

// Some ten times what the costliest input of the corpus takes, as compressed ones take more. What
// looks at all of an input at each of its bytes is beyond it from a few kilobytes on.
constexpr uint64_t kLeast = 2'000'000, kAByte = 2'000;

}  // namespace

uint64_t fuzz_work = 0;

extern "C" void __sanitizer_cov_trace_pc() { ++fuzz_work; }

WorkLimit::WorkLimit(size_t bytes) : bytes_(bytes), before_(fuzz_work) {}

WorkLimit::~WorkLimit() {
  const uint64_t work = fuzz_work - before_, most = kLeast + kAByte * bytes_;
  if (work <= most) return;
  fprintf(stderr, "%zu bytes made %llu steps of work, more than %llu\n", bytes_,
          static_cast<unsigned long long>(work), static_cast<unsigned long long>(most));
  abort();
}
