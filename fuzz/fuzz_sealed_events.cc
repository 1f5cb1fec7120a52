// The columns of a sealed chunk. What decodes must survive being encoded again.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <string>

#include "recording/sealed_events.h"
#include "work_limit.h"

using namespace gpumemprof;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const WorkLimit limit(size);
  if (size < 2) return 0;
  static EventDecoder decoder;
  static EventEncoder encoder;
  uint16_t count;
  memcpy(&count, data, 2);
  EventBatch batch, again;
  if (!decoder.decode({reinterpret_cast<const char*>(data) + 2, size - 2}, count, &batch)) return 0;
  std::string bytes;
  encoder.encode(batch, &bytes);
  if (!decoder.decode(bytes, count, &again) || again.address != batch.address ||
      again.time_ns != batch.time_ns || again.size_bytes != batch.size_bytes) {
    abort();
  }
  return 0;
}
