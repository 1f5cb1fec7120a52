// A library with a copy of TensorFlow's classes of its own, under the same names and of another shape. It says what
// its own functions did.
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>

namespace tsl {

struct AllocationAttributes {};

namespace port {
static int made, freed;
__attribute__((noinline)) void* AlignedMalloc(size_t size, std::align_val_t) { return ++made, malloc(size + 1); }
__attribute__((noinline)) void AlignedFree(void* p) { ++freed, free(p); }
}  // namespace port

class BFCAllocator {
 public:
  virtual ~BFCAllocator() = default;
  virtual int Name() { abort(); }  // another type than there: it must never be called
  virtual void* AllocateRaw(size_t, size_t) { return nullptr; }
  virtual void* AllocateRaw(size_t alignment, size_t bytes, const AllocationAttributes& attributes);
  virtual void DeallocateRaw(void* p);
  int allocated = 0, deallocated = 0;
};
void* BFCAllocator::AllocateRaw(size_t alignment, size_t bytes, const AllocationAttributes&) {
  ++allocated;
  return port::AlignedMalloc(bytes, std::align_val_t{alignment});
}
void BFCAllocator::DeallocateRaw(void* p) {
  ++deallocated;
  port::AlignedFree(p);
}

}  // namespace tsl

extern "C" void use_foreign(int times) {
  auto* allocator = new tsl::BFCAllocator;
  tsl::BFCAllocator* volatile hidden = allocator;
  for (int i = 0; i < times; ++i) {
    void* p = hidden->AllocateRaw(64, 1000, tsl::AllocationAttributes{});
    hidden->DeallocateRaw(p);
  }
  printf("%d %d %d %d\n", allocator->allocated, allocator->deallocated, tsl::port::made, tsl::port::freed);
  fflush(stdout);
  delete allocator;
}
