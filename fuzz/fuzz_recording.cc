// The whole reader on any bytes.
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "mend_crcs.h"
#include "recording/allocator_history.h"
#include "recording/open.h"
#include "trace/live_state.h"
#include "work_limit.h"

using namespace gpumemprof;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const WorkLimit limit(size);
  static const int fd = memfd_create("fuzz", 0);
  static const std::string path = "/proc/self/fd/" + std::to_string(fd);
  if (ftruncate(fd, 0) != 0 || pwrite(fd, data, size, 0) != static_cast<ssize_t>(size)) return 0;
  auto source = open_recording({path});
  if (!source) return 0;
  EventBatch batch;
  LiveState state;
  AllocatorHistory history(**source, {.stands_alone = size % 2 == 0});
  uint64_t last = 0;
  while (auto more = (*source)->next(&batch)) {
    if (!*more) break;
    const Tables& tables = (*source)->tables();
    for (size_t i = 0; i < batch.size(); ++i) {
      if (batch.time_ns[i] < last || batch.thread[i] >= tables.threads.size() ||
          batch.device[i] >= tables.devices.size() ||
          batch.stack[i] >= tables.stacks.stack_count()) {
        abort();
      }
      last = batch.time_ns[i];
    }
    uint32_t before = 0;
    for (const Mark& mark : batch.marks) {
      if (mark.before_event < before || mark.before_event > batch.size() ||
          mark.thread >= tables.threads.size() || mark.text >= tables.strings.size()) {
        abort();
      }
      before = mark.before_event;
    }
    state.apply(batch);
    history.add(batch);
  }
  history.finish();
  return 0;
}
