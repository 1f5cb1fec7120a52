// Profiles of TensorFlow, on any bytes: what is read is in order and stays within its tables.
#include <stdint.h>
#include <stdlib.h>

#include <string>

#include "readers/memory_file.h"
#include "readers/xplane/read.h"
#include "trace/live_state.h"
#include "work_limit.h"

using namespace gpumemprof;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const WorkLimit limit(size);
  MemoryFile file(std::string(reinterpret_cast<const char*>(data), size));
  auto source = read_xplane(file, {.memory_bytes = 64 << 20});
  if (!source) {
    if (source.error().message.find('\n') != std::string::npos) abort();
    if (source.error().offset.value_or(size + 1) > size) abort();
    return 0;
  }
  const Tables& tables = (*source)->tables();
  LiveState state;
  if (const LiveState* before = (*source)->state_before_first_event()) state = *before;
  EventBatch batch;
  uint64_t last = 0;
  while (*(*source)->next(&batch)) {
    for (size_t i = 0; i < batch.size(); ++i) {
      if (batch.time_ns[i] < last || batch.device[i] >= tables.devices.size() ||
          batch.thread[i] >= tables.threads.size() ||
          batch.stack[i] >= tables.stacks.stack_count()) {
        abort();
      }
      last = batch.time_ns[i];
    }
    state.apply(batch);
  }
  return 0;
}
