// A library with TensorFlow's names of which some do not fit, as a release to come might have them:
//
//   (none)           all of it fits
//   -DOTHER_SHAPE    the class has a function more, before Name(), which must not be called by its place
//   -DOTHER_FREE     DeallocateRaw takes another argument, so it has another name
//   -DNO_FREE        AlignedFree has another name
//   -DNO_ALLOC       AlignedMalloc has another name
//
// use(TIMES) makes and frees so many blocks both ways, one after another, and says how many of its functions ran.
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>

#ifdef NO_FREE
#define AlignedFree AlignedRelease
#endif
#ifdef NO_ALLOC
#define AlignedMalloc AlignedAcquire
#endif
#ifdef OTHER_FREE
#define FREE_ARGUMENTS void *p, int
#define MORE , 0
#else
#define FREE_ARGUMENTS void* p
#define MORE
#endif

namespace tsl {

struct AllocationAttributes {};
int made, freed;

namespace port {
__attribute__((noinline)) void* AlignedMalloc(size_t size, std::align_val_t) { return ++made, malloc(size); }
__attribute__((noinline)) void AlignedFree(void* p) { ++freed, free(p); }
}  // namespace port

class BFCAllocator {
 public:
  virtual ~BFCAllocator() = default;
#ifdef OTHER_SHAPE
  virtual void Added() { abort(); }
#endif
  virtual std::string Name() { return "fake_cpu_bfc"; }
  virtual void* AllocateRaw(size_t, size_t) { return nullptr; }
  virtual void* AllocateRaw(size_t alignment, size_t bytes, const AllocationAttributes& attributes);
  virtual void DeallocateRaw(FREE_ARGUMENTS);
};
void* BFCAllocator::AllocateRaw(size_t, size_t bytes, const AllocationAttributes&) { return ++made, malloc(bytes); }
void BFCAllocator::DeallocateRaw(FREE_ARGUMENTS) { ++freed, free(p); }

}  // namespace tsl

extern "C" void use(int times) {
  auto* allocator = new tsl::BFCAllocator;
  tsl::BFCAllocator* volatile hidden = allocator;
  for (int i = 0; i < times; ++i) {
    hidden->DeallocateRaw(hidden->AllocateRaw(64, 1000, tsl::AllocationAttributes{}) MORE);
    tsl::port::AlignedFree(tsl::port::AlignedMalloc(2000, std::align_val_t{64}));
  }
  printf("%d %d\n", tsl::made, tsl::freed);
  fflush(stdout);
  delete allocator;
}
