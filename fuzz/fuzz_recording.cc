// The whole reader on any bytes. The mutator puts the CRCs right again, else nothing would get past
// them.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "format/checksum.h"
#include "recording/allocator_history.h"
#include "recording/open.h"
#include "trace/live_state.h"

using namespace gpumemprof;

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned seed) {
  size = LLVMFuzzerMutate(data, size, max_size);
  if (seed % 8 == 0 || size < format::kPage) return size;  // now and then a file with wrong CRCs
  auto* header = reinterpret_cast<format::FileHeader*>(data);
  memcpy(header->magic, format::kFileMagic, sizeof(header->magic));
  header->major = format::kMajor;
  header->header_bytes = format::kPage;
  header->crc32c = format::header_crc(*header);
  for (size_t at = format::kPage; at + sizeof(format::ChunkHeader) <= size;) {
    format::ChunkHeader chunk;
    memcpy(&chunk, data + at, sizeof(chunk));
    size_t left = size - at - sizeof(chunk);
    if (chunk.magic != format::kChunkMagic || chunk.length > left) {
      at += format::kPage;
      continue;
    }
    chunk.recording_id = header->recording_id;
    bool header_only = chunk.type == format::kStage || chunk.type == format::kZero;
    chunk.crc32c = format::chunk_crc(chunk, header_only ? nullptr : data + at + sizeof(chunk));
    memcpy(data + at, &chunk, sizeof(chunk));
    at += format::round_to_page(sizeof(chunk) + chunk.length);
  }
  return size;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
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
