// Profiles of JAX's memory, compressed or not, on any bytes: what is read stays within its tables.
#include <stdint.h>
#include <stdlib.h>

#include <string>

#include "readers/memory_file.h"
#include "readers/pprof/read.h"
#include "trace/live_state.h"
#include "work_limit.h"

using namespace gpumemprof;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const WorkLimit limit(size);
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  (void)looks_like_pprof(bytes);
  MemoryFile file(bytes);
  auto source = read_pprof(file, {.memory_bytes = 64 << 20, .profile_bytes = 16 << 20});
  if (!source) {
    const Error& error = source.error();
    if (error.message.find('\n') != std::string::npos) abort();
    const bool is_inside = error.message.find("decompressed profile") != std::string::npos;
    if (!is_inside && error.offset.value_or(size + 1) > size) abort();
    return 0;
  }
  const Tables& tables = (*source)->tables();
  const LiveState& state = *(*source)->state_before_first_event();
  if (state.devices().size() > tables.devices.size()) abort();
  for (size_t i = 0; i < state.devices().size(); ++i) {
    for (const Holder& holder : state.holders_now(static_cast<uint16_t>(i))) {
      if (holder.stack >= tables.stacks.stack_count()) abort();
    }
  }
  return 0;
}
