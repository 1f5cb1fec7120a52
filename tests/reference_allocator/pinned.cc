// Runs a list of calls on standard input through PyTorch's own allocator of pinned host memory: the
// template of its headers, over addresses that are numbers. Nothing is pinned.
//
//   a ID BYTES   allocate        f ID   free        e   empty_cache
//
// Prints "A ID ADDRESS" for each allocation, "M|F ADDRESS BYTES" for each block taken from the
// driver or given back, and last "T BYTES", what the allocator counts as its own.
#include <ATen/core/CachingHostAllocator.h>

#include <cinttypes>
#include <cstdio>
#include <unordered_map>

namespace {

struct NoStream {
  explicit NoStream(c10::Stream) {}
  operator c10::Stream() const { return c10::Stream(c10::Stream::DEFAULT, c10::kCPU); }
  bool operator==(const NoStream&) const { return true; }
};
struct NoEvent {};

}  // namespace

template <>
struct std::hash<NoStream> {
  size_t operator()(const NoStream&) const { return 0; }
};

namespace {

using Block = at::HostBlock<NoStream>;

struct Pinned final : at::CachingHostAllocatorImpl<NoStream, NoEvent, Block> {
  uint64_t next = 0x700000000000;

  void allocate_host_memory(size_t size, void** out) override {
    *out = reinterpret_cast<void*>(next);
    printf("M %" PRIu64 " %zu\n", next, size);
    next += (size + 0xFFFFF) & ~uint64_t{0xFFFFF};
  }
  void free_block(Block* block) override {
    printf("F %" PRIu64 " %zu\n", reinterpret_cast<uint64_t>(block->ptr_), block->size_);
  }
};

}  // namespace

int main() {
  static Pinned allocator;
  std::unordered_map<uint64_t, void*> live;
  char kind;
  while (scanf(" %c", &kind) == 1) {
    uint64_t id = 0, bytes = 0;
    if (kind == 'a' && scanf("%" SCNu64 " %" SCNu64, &id, &bytes) == 2) {
      const auto [address, context] = allocator.allocate(bytes);
      live[id] = context;
      printf("A %" PRIu64 " %" PRIu64 "\n", id, reinterpret_cast<uint64_t>(address));
    } else if (kind == 'f' && scanf("%" SCNu64, &id) == 1) {
      allocator.free(live.at(id));
    } else if (kind == 'e') {
      allocator.empty_cache();
    } else {
      return 2;
    }
  }
  printf("T %" PRIu64 "\n", static_cast<uint64_t>(allocator.getStats().allocated_bytes.current));
  return 0;
}
