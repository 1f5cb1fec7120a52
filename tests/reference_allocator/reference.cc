// Runs a list of calls on standard input through PyTorch's own caching allocator, over fake_cuda.c.
//
//   a ID BYTES STREAM   allocate           f ID        free
//   u ID STREAM         record_stream: a later free waits until …
//   c ID                … the streams that use ID are done with it
//   e                   empty_cache        r           reset the peaks
//   h                   forget the history recorded so far
//   p K | q K | x K     allocations go to private pool K | no longer | its last user is gone
//
// Prints "A ID ADDRESS" or "O ID" for each allocation, "M|F|P|U|X ADDRESS BYTES" for each call of
// the driver, and last a line of JSON with the statistics. With REFERENCE_SNAPSHOT=FILE the history
// is recorded, and written there as torch.cuda.memory._dump_snapshot() lays it out, in JSON. A
// stack has one frame: the number of the call. REFERENCE_FRACTION: setMemoryFraction.
#include <c10/cuda/CUDACachingAllocator.h>
#if __has_include(<c10/cuda/PeerToPeerAccess.h>)
#include <c10/cuda/PeerToPeerAccess.h>
#endif

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <unordered_map>
#include <vector>

namespace allocator = c10::cuda::CUDACachingAllocator;

namespace c10::cuda::_internal {
// Exported by the library and declared in no header: libtorch_cuda answers it in a real process.
__attribute__((visibility("default"))) void setHasPrimaryContext(bool (*)(signed char));
}  // namespace c10::cuda::_internal
#if !__has_include(<c10/cuda/PeerToPeerAccess.h>)
namespace at::cuda::detail {
void init_p2p_access_cache(int64_t devices);  // libtorch_cuda's; here the fake runtime has it
}
#endif

extern "C" {
void fake_observe(void (*)(char, uint64_t, uint64_t));
void fake_freeing(uint64_t);
void fake_ready(uint64_t);
}

namespace {

struct CallNumber : c10::GatheredContext {
  explicit CallNumber(uint64_t number_, char kind_) : number(number_), kind(kind_) {}
  uint64_t number;
  char kind;
};
uint64_t call_number = 0;
char call_kind = ' ';
std::shared_ptr<c10::GatheredContext> gather() {
  return std::make_shared<CallNumber>(call_number, call_kind);
}

void record_history() {
  constexpr size_t kAll = SIZE_MAX / 2;
#if TORCH_MINOR >= 11
  allocator::recordHistory(true, gather, kAll, allocator::RecordContext::ALL, true, {});
#elif TORCH_MINOR >= 8
  allocator::recordHistory(true, gather, kAll, allocator::RecordContext::ALL, true);
#else
  allocator::recordHistory(true, gather, kAll, allocator::RecordContext::ALL);
#endif
}

void write_frames(FILE* out, const std::shared_ptr<c10::GatheredContext>& context) {
  if (context == nullptr) return;
  const auto* call = static_cast<const CallNumber*>(context.get());
  fprintf(out,
          ", \"frames\": [{\"filename\": \"calls.txt\", \"line\": %" PRIu64 ", \"name\": \"%s\"}]",
          call->number,
          call->kind == 'e'   ? "empty_cache"
          : call->kind == 'a' ? "malloc"
                              : "free");
}

template <class Segment>
void write_segment(FILE* out, const Segment& s) {
  fprintf(out,
          "{\"device\": 0, \"address\": %zu, \"total_size\": %zu, \"allocated_size\": %zu, "
          "\"active_size\": %zu, "
          "\"requested_size\": %zu, \"stream\": %" PRIu64
          ", \"segment_type\": \"%s\", \"segment_pool_id\": [%llu, %llu], "
          "\"is_expandable\": %s",
          (size_t)s.address, s.total_size, s.allocated_size, s.active_size, s.requested_size,
          (uint64_t)s.stream, s.is_large ? "large" : "small",
          (unsigned long long)s.owner_private_pool_id.first,
          (unsigned long long)s.owner_private_pool_id.second, s.is_expandable ? "true" : "false");
  write_frames(out, s.context_when_allocated);
  fprintf(out, ", \"blocks\": [");
  size_t address = s.address;
  for (size_t i = 0; i < s.blocks.size(); ++i) {
    const auto& b = s.blocks[i];
    fprintf(out, "%s{\"address\": %zu, \"size\": %zu, \"requested_size\": %zu, \"state\": \"%s\"",
            i ? ", " : "", address, b.size, b.requested_size,
            b.allocated ? "active_allocated"
            : b.active  ? "active_pending_free"
                        : "inactive");
    write_frames(out, b.context_when_allocated);
    fprintf(out, "}");
    address += b.size;
  }
  fprintf(out, "]}");
}

template <class Entry>
void write_entry(FILE* out, const Entry& e, uint64_t index) {
  static const char* const kNames[] = {"alloc",         "free_requested", "free_completed",
                                       "segment_alloc", "segment_free",   "segment_map",
                                       "segment_unmap", "snapshot",       "oom"};
  // Times are of no use here and would make two runs differ: one microsecond an event.
  fprintf(out,
          "{\"action\": \"%s\", \"%s\": %zu, \"size\": %zu, \"stream\": %" PRIu64
          ", \"time_us\": %" PRIu64,
          kNames[e.action_], e.action_ == 8 ? "device_free" : "addr", (size_t)e.addr_, e.size_,
          (uint64_t)e.stream_, 1'700'000'000'000'000 + index);
#if TORCH_MINOR >= 12
  fprintf(out, ", \"pool_id\": [%llu, %llu]", (unsigned long long)e.mempool_.first,
          (unsigned long long)e.mempool_.second);
#endif
  write_frames(out, e.context_);
  fprintf(out, "}");
}

void write_snapshot(const char* path) {
  FILE* out = fopen(path, "w");
  if (out == nullptr) exit(3);
  const auto snapshot = allocator::snapshot();
  fprintf(out, "{\"segments\": [");
  for (size_t i = 0; i < snapshot.segments.size(); ++i) {
    if (i != 0) fputs(",\n", out);
    write_segment(out, snapshot.segments[i]);
  }
  fprintf(out, "],\n\"device_traces\": [[");
  uint64_t index = 0;
  for (const auto& entry : snapshot.device_traces.at(0)) {
    if (static_cast<int>(entry.action_) > 8) continue;
    if (index != 0) fputs(",\n", out);
    write_entry(out, entry, index++);
  }
  const auto& config = snapshot.config_metadata;
  fprintf(out,
          "]],\n\"allocator_settings\": {\"PYTORCH_CUDA_ALLOC_CONF\": \"%s\", \"max_split_size\": "
          "%lld, "
          "\"garbage_collection_threshold\": %g, \"expandable_segments\": "
          "%s},\n\"external_annotations\": []}\n",
          config.last_allocator_settings.c_str(), (long long)config.max_split_size,
          config.garbage_collection_threshold, config.expandable_segments ? "true" : "false");
  fclose(out);
}

// Streams are numbered from 0; a stream of somebody else's is an aligned pointer.
cudaStream_t stream_of(uint64_t number) { return reinterpret_cast<cudaStream_t>(number << 12); }

class Calls {
 public:
  void run(const char* line) {
    uint64_t id = 0, a = 0, b = 0;
    if (sscanf(line + 1, "%" SCNu64 " %" SCNu64 " %" SCNu64, &id, &a, &b) < 0) id = 0;
    ++call_number;
    call_kind = line[0];
    switch (line[0]) {
      case 'a':
        allocate(id, a, b);
        break;
      case 'f':
        free(id);
        break;
      case 'u':
        record_stream(id, a);
        break;
      case 'c':
        fake_ready(id);
        break;
      case 'e':
        allocator::emptyCache();
        break;
      case 'r':
        allocator::resetPeakStats(0);
        break;
      case 'h':
        record_history();
        break;
      case 'p':
        allocator::get()->beginAllocateToPool(0, {0, id}, [](cudaStream_t) { return true; });
        break;
      case 'q':
        allocator::get()->endAllocateToPool(0, {0, id});
        break;
      case 'x':
        allocator::get()->releasePool(0, {0, id});
        break;
      default:
        break;
    }
  }

 private:
  void allocate(uint64_t id, uint64_t bytes, uint64_t stream) {
    try {
      live_[id] = allocator::raw_alloc_with_stream(bytes, stream_of(stream));
      printf("A %" PRIu64 " %" PRIx64 "\n", id, reinterpret_cast<uint64_t>(live_[id]));
    } catch (const std::exception& error) {
      printf("O %" PRIu64 "\n", id);
      if (getenv("REFERENCE_MESSAGES") != nullptr) fprintf(stderr, "%s\n", error.what());
    }
  }
  void free(uint64_t id) {
    const auto found = live_.find(id);
    if (found == live_.end()) return;
    fake_freeing(id);
    allocator::raw_delete(found->second);
    live_.erase(found);
  }
  void record_stream(uint64_t id, uint64_t stream) {
    const auto found = live_.find(id);
    if (found == live_.end()) return;
    c10::DataPtr pointer(found->second, found->second, allocator::get()->raw_deleter(),
                         c10::Device(c10::DeviceType::CUDA, 0));
    allocator::get()->recordStream(pointer, c10::cuda::getStreamFromExternal(stream_of(stream), 0));
    pointer.release_context();
  }
  std::unordered_map<uint64_t, void*> live_;
};

}  // namespace

int main() {
  fake_observe([](char kind, uint64_t address, uint64_t size) {
    printf("%c %" PRIx64 " %" PRIu64 "\n", kind, address, size);
  });
  c10::cuda::_internal::setHasPrimaryContext([](signed char) { return true; });
  allocator::init(1);
#if __has_include(<c10/cuda/PeerToPeerAccess.h>)
  c10::cuda::detail::init_p2p_access_cache(1);
#else
  at::cuda::detail::init_p2p_access_cache(1);
#endif
  if (const char* fraction = getenv("REFERENCE_FRACTION"))
    allocator::setMemoryFraction(atof(fraction), 0);
  const char* snapshot = getenv("REFERENCE_SNAPSHOT");
  if (snapshot != nullptr) record_history();
  Calls calls;
  char line[256];
  while (fgets(line, sizeof line, stdin) != nullptr) calls.run(line);

  const auto stats = allocator::getDeviceStats(0);
  const auto all = [](const auto& by_pool) { return by_pool[0]; };  // [0]: both pools together
  const auto now = allocator::snapshot();
  printf(
      "{\"peak_reserved\": %lld, \"reserved\": %lld, \"peak_allocated\": %lld, \"allocated\": "
      "%lld, "
      "\"peak_active\": %lld, \"active\": %lld, \"peak_requested\": %lld, \"segments\": %zu, "
      "\"num_alloc_retries\": %lld, \"num_ooms\": %lld}\n",
      (long long)all(stats.reserved_bytes).peak, (long long)all(stats.reserved_bytes).current,
      (long long)all(stats.allocated_bytes).peak, (long long)all(stats.allocated_bytes).current,
      (long long)all(stats.active_bytes).peak, (long long)all(stats.active_bytes).current,
      (long long)all(stats.requested_bytes).peak, now.segments.size(),
      (long long)stats.num_alloc_retries, (long long)stats.num_ooms);
  fflush(stdout);
  if (snapshot != nullptr) write_snapshot(snapshot);
  _exit(0);  // what is live stays: the library's own teardown has nothing to do with the question
}
