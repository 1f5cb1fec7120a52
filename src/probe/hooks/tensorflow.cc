// TensorFlow: the functions of libtensorflow_framework that every tensor's memory passes through,
// defined here under their mangled names. No header of TensorFlow is used; what is assumed of its
// classes stands beside the assumption.
//
//   BFCAllocator::AllocateRaw, DeallocateRaw    pools: of a GPU, of oneDNN's large blocks, of the
//                                               CPU where TF_CPU_ALLOCATOR_USE_BFC is set
//   GpuCudaMallocAsyncAllocator::…              the driver's own pool (TF_GPU_ALLOCATOR)
//   port::AlignedMalloc, AlignedFree, …         the CPU's default allocator, oneDNN's small blocks,
//                                               and the regions that a pool on the CPU is made of
//   SubAllocator::VisitAlloc, VisitFree         regions of any pool
//
// Virtual functions come to us because the tables of virtual functions hold symbols, which are
// looked up like calls. Other libraries may define the same names for classes of their own: the
// real function is that of the object in which the block's table, or the caller, lies, and what is
// not TensorFlow's is passed through.
#include <string.h>

#include "gpumemprof/gpumemprof.h"
#include "probe/clients.h"
#include "probe/counters.h"
#include "probe/dynamic.h"
#include "probe/framework.h"
#include "probe/recorder.h"
#include "probe/scopes.h"
#include "probe/stream.h"
#include "probe/sys.h"

#define HOOK extern "C" __attribute__((visibility("default")))

#define BFC_ALLOCATE "_ZN3tsl12BFCAllocator11AllocateRawEmmRKNS_20AllocationAttributesE"
#define BFC_DEALLOCATE "_ZN3tsl12BFCAllocator13DeallocateRawEPv"
#define BFC_SIZE "_ZNK3tsl12BFCAllocator13AllocatedSizeEPKv"
#define OLD_BFC_ALLOCATE "_ZN10tensorflow12BFCAllocator11AllocateRawEmmRKNS_20AllocationAttributesE"
#define OLD_BFC_DEALLOCATE "_ZN10tensorflow12BFCAllocator13DeallocateRawEPv"
#define OLD_BFC_SIZE "_ZNK10tensorflow12BFCAllocator13AllocatedSizeEPKv"
#define ASYNC_ALLOCATE "_ZN15stream_executor27GpuCudaMallocAsyncAllocator11AllocateRawEmm"
#define ASYNC_DEALLOCATE "_ZN15stream_executor27GpuCudaMallocAsyncAllocator13DeallocateRawEPv"
#define MALLOC "_ZN3tsl4port13AlignedMallocEmSt11align_val_t"
#define INT_MALLOC "_ZN3tsl4port13AlignedMallocEmi"  // 2.16
#define OLD_MALLOC "_ZN10tensorflow4port13AlignedMallocEmi"
#define FREE "_ZN3tsl4port11AlignedFreeEPv"
#define OLD_FREE "_ZN10tensorflow4port11AlignedFreeEPv"
#define SIZED_FREE "_ZN3tsl4port16AlignedSizedFreeEPvmSt11align_val_t"
#define INT_SIZED_FREE "_ZN3tsl4port16AlignedSizedFreeEPvmm"
#define VISIT_ALLOC "_ZN3tsl12SubAllocator10VisitAllocEPvim"
#define VISIT_FREE "_ZN3tsl12SubAllocator9VisitFreeEPvim"

// Declared before anything uses their addresses; defined at the end.
HOOK void* gpumemprof_tf_bfc_allocate(void*, size_t, size_t, const void*) __asm__(BFC_ALLOCATE);
HOOK void gpumemprof_tf_bfc_deallocate(void*, void*) __asm__(BFC_DEALLOCATE);
HOOK void* gpumemprof_tf_old_allocate(void*, size_t, size_t, const void*) __asm__(OLD_BFC_ALLOCATE);
HOOK void gpumemprof_tf_old_deallocate(void*, void*) __asm__(OLD_BFC_DEALLOCATE);
HOOK void* gpumemprof_tf_async_allocate(void*, size_t, size_t) __asm__(ASYNC_ALLOCATE);
HOOK void gpumemprof_tf_async_deallocate(void*, void*) __asm__(ASYNC_DEALLOCATE);
HOOK void* gpumemprof_tf_malloc(size_t, size_t) __asm__(MALLOC);
HOOK void* gpumemprof_tf_int_malloc(size_t, int) __asm__(INT_MALLOC);
HOOK void* gpumemprof_tf_old_malloc(size_t, int) __asm__(OLD_MALLOC);
HOOK void gpumemprof_tf_free(void*) __asm__(FREE);
HOOK void gpumemprof_tf_old_free(void*) __asm__(OLD_FREE);
HOOK void gpumemprof_tf_sized_free(void*, size_t, size_t) __asm__(SIZED_FREE);
HOOK void gpumemprof_tf_int_sized_free(void*, size_t, size_t) __asm__(INT_SIZED_FREE);
HOOK void gpumemprof_tf_visit_alloc(void*, void*, int, size_t) __asm__(VISIT_ALLOC);
HOOK void gpumemprof_tf_visit_free(void*, void*, int, size_t) __asm__(VISIT_FREE);

namespace gpumemprof::probe {
namespace {

using namespace format;

extern "C" int posix_memalign(void**, size_t, size_t);
extern "C" void free(void*);

constexpr char kLibrary[] = "libtensorflow_framework";

// ---- The real functions ------------------------------------------------------------------------

// What TensorFlow's own do (tsl/platform/default/port.cc), for callers whose real function cannot
// be found. Of a class there is always one, in the object that has its table.
void* plain_malloc(size_t size, size_t alignment) {
  void* p = nullptr;
  if (alignment < sizeof(void*)) alignment = sizeof(void*);
  return posix_memalign(&p, alignment, size) == 0 ? p : nullptr;
}
void* no_block(void*, size_t, size_t, const void*) { return nullptr; }
void nothing(void*, void*, int, size_t) {}
size_t no_size(const void*, const void*) { return 0; }

enum FunctionIndex : uint32_t {
  kBfcAllocate,
  kBfcDeallocate,
  kOldBfcAllocate,
  kOldBfcDeallocate,
  kAsyncAllocate,
  kAsyncDeallocate,
  kMalloc,
  kIntMalloc,
  kOldMalloc,
  kFree,
  kOldFree,
  kSizedFree,
  kIntSizedFree,
  kVisitAlloc,
  kVisitFree,
  kHooks,             // the ones before it are stood in for, those behind it only called
  kBfcSize = kHooks,  // AllocatedSize(const void*)
  kOldBfcSize,
  kFunctions
};

#define ADDRESS(f) reinterpret_cast<void*>(&f)
const SharedName kTable[kFunctions] = {
    {BFC_ALLOCATE, ADDRESS(gpumemprof_tf_bfc_allocate), ADDRESS(no_block), true},
    {BFC_DEALLOCATE, ADDRESS(gpumemprof_tf_bfc_deallocate), ADDRESS(nothing), false},
    {OLD_BFC_ALLOCATE, ADDRESS(gpumemprof_tf_old_allocate), ADDRESS(no_block), true},
    {OLD_BFC_DEALLOCATE, ADDRESS(gpumemprof_tf_old_deallocate), ADDRESS(nothing), false},
    {ASYNC_ALLOCATE, ADDRESS(gpumemprof_tf_async_allocate), ADDRESS(no_block), true},
    {ASYNC_DEALLOCATE, ADDRESS(gpumemprof_tf_async_deallocate), ADDRESS(nothing), false},
    {MALLOC, ADDRESS(gpumemprof_tf_malloc), ADDRESS(plain_malloc), true},
    {INT_MALLOC, ADDRESS(gpumemprof_tf_int_malloc), ADDRESS(plain_malloc), true},
    {OLD_MALLOC, ADDRESS(gpumemprof_tf_old_malloc), ADDRESS(plain_malloc), true},
    {FREE, ADDRESS(gpumemprof_tf_free), ADDRESS(free), false},
    {OLD_FREE, ADDRESS(gpumemprof_tf_old_free), ADDRESS(free), false},
    {SIZED_FREE, ADDRESS(gpumemprof_tf_sized_free), ADDRESS(free), false},
    {INT_SIZED_FREE, ADDRESS(gpumemprof_tf_int_sized_free), ADDRESS(free), false},
    {VISIT_ALLOC, ADDRESS(gpumemprof_tf_visit_alloc), ADDRESS(nothing), true},
    {VISIT_FREE, ADDRESS(gpumemprof_tf_visit_free), ADDRESS(nothing), false},
    {BFC_SIZE, nullptr, ADDRESS(no_size), false},
    {OLD_BFC_SIZE, nullptr, ADDRESS(no_size), false},
};

// Of a custom build everything may lie in one object; all of them have "tensorflow" in the name.
constinit Clients g_clients(kTable, kLibrary, "tensorflow");
static_assert(kFunctions <= kMostSharedNames);

using Allocate = void* (*)(void*, size_t, size_t, const void*);
using Deallocate = void (*)(void*, void*);
using Size = size_t (*)(const void*, const void*);

// ---- Allocators and their memory ---------------------------------------------------------------

constexpr int8_t kCpuType = GPUMEMPROF_TENSORFLOW_CPU, kGpuType = GPUMEMPROF_TENSORFLOW_GPU,
                 kOtherType = GPUMEMPROF_TENSORFLOW_OTHER;
constexpr uint8_t kFrameworkLayer = 1, kAllocatorLayer = 2, kDriverLayer = 3;  // Layer::k…

/// A pool, by its object. Its blocks lie in its regions, so these are a memory of their own.
struct Pool {
  const void* self;  // stored last
  const void* table;
  Memory blocks, regions;
};
constexpr uint32_t kPools = 32;
Pool g_pools[kPools];
uint32_t g_pool_count;

constexpr Memory kAligned = {0, {kCpuType, 0}, kFrameworkLayer, true, "cpu"};
constexpr Memory kNoPool = {1, {kOtherType, -1}, kAllocatorLayer, false, "other pools"};
constexpr Memory kNoPoolRegions = {2, {kOtherType, -1}, kDriverLayer, true, "other pools regions"};
constexpr uint16_t kFirstPoolId = 3;

// In the table of tsl::Allocator, in all releases: two destructors, Name(), AllocateRaw(alignment,
// bytes), the same with attributes, DeallocateRaw(p).
constexpr int kSlotName = 2, kSlotAllocate = 3, kSlotDeallocate = 5;

inline const void* table_of(const void* object) { return *static_cast<const void* const*>(object); }

template <class F>
F virtual_function(void* object, int slot) {
  return reinterpret_cast<F>((*static_cast<void***>(object))[slot]);
}

/// std::string as libstdc++ has it since 2015, which all wheels are built with. The destructor
/// makes it a class that is returned in memory, as the real one is.
struct String {
  const char* text;
  size_t length;
  uint64_t local[2];
  ~String() {}
};
size_t read_name(void* allocator, char* out, size_t size) {
  String name = virtual_function<String (*)(void*)>(allocator, kSlotName)(allocator);
  const void* local = name.local;
  bool is_short = name.text == local;
  // Anything else than the two forms of that class is not believed.
  if (!name.text || name.length >= size || is_short != (name.length < sizeof(name.local))) return 0;
  memcpy(out, name.text, name.length);
  auto drop = reinterpret_cast<void (*)(void*)>(dlsym ? dlsym(RTLD_DEFAULT, "_ZdlPv") : nullptr);
  if (!is_short && drop) drop(const_cast<char*>(name.text));
  return name.length;
}

/// "GPU_0_bfc", "gpu_async_1": the number after `start`; -1 where it is another name.
int number_after(const char* name, const char* start) {
  size_t length = strlen(start);
  if (strncmp(name, start, length) != 0) return -1;
  int number = -1;
  for (const char* p = name + length; *p >= '0' && *p <= '9' && number < 12; ++p) {
    number = (number < 0 ? 0 : number * 10) + (*p - '0');
  }
  return number;
}

Device device_of(const char* name) {
  int gpu = number_after(name, "GPU_");
  if (gpu < 0) gpu = number_after(name, "gpu_async_");
  if (gpu >= 0) return {kGpuType, static_cast<int8_t>(gpu)};
  // "mklcpu", "bfc_cpu_allocator_for_gpu", "gpu_host_bfc", "cuda_host_bfc": memory of the host.
  if (strstr(name, "cpu") || strstr(name, "host")) return {kCpuType, 0};
  return {kOtherType, -1};
}

__attribute__((noinline, cold)) const Pool* add_pool(void* self, const void* table,
                                                     bool size_is_requested) {
  uint32_t index = __atomic_fetch_add(&g_pool_count, 1, __ATOMIC_RELAXED);
  if (index >= kPools) return __atomic_fetch_sub(&g_pool_count, 1, __ATOMIC_RELAXED), nullptr;
  Pool* pool = &g_pools[index];
  Memory* blocks = &pool->blocks;
  constexpr char kRegions[] = " regions";
  size_t length = read_name(self, blocks->name, sizeof(blocks->name) - sizeof(kRegions));
  if (length == 0) length = strlen(strcpy(blocks->name, "unnamed pool"));
  blocks->id = static_cast<uint16_t>(kFirstPoolId + 2 * index);
  blocks->device = device_of(blocks->name);
  blocks->layer = kAllocatorLayer;
  blocks->size_is_requested = size_is_requested;
  pool->regions = *blocks;
  pool->regions.id += 1;
  pool->regions.layer = kDriverLayer;
  pool->regions.size_is_requested = true;
  memcpy(pool->regions.name + length, kRegions, sizeof(kRegions));
  pool->table = table;
  __atomic_store_n(&pool->self, self, __ATOMIC_RELEASE);
  return pool;
}

// ---- What a thread is doing --------------------------------------------------------------------

/// Zero at the thread's birth; plain data, so it outlives every destructor.
struct ThreadState {
  // The frame in which a pool is being asked, and that pool: what is allocated further down is a
  // region. An address, not a counter: an exception that passes must leave nothing behind.
  const char* pool_frame;
  const Pool* pool;
  const char* malloc_frame;     // in which an AlignedMalloc runs: one form of it may call another
  void *region, *freed_region;  // told by one function already, when another one of it comes
  const void* freeing;          // AlignedSizedFree may call AlignedFree
  const uint64_t* annotation;   // TensorFlow's of this thread
  const Pool* last_pool;
};
thread_local ThreadState t_state __attribute__((tls_model("initial-exec")));

/// Whether `frame` is one further up the stack than where this is inlined.
inline bool is_inside(const char* frame) {
  return frame && static_cast<const char*>(__builtin_frame_address(0)) < frame;
}

/// Null where there are too many.
const Pool* pool_of(ThreadState* t, void* self, bool size_is_requested) {
  const void* table = table_of(self);
  const Pool* last = t->last_pool;
  if (__builtin_expect(last && last->self == self && last->table == table, 1)) return last;
  uint32_t count = __atomic_load_n(&g_pool_count, __ATOMIC_RELAXED);
  const Pool* found = nullptr;
  for (uint32_t i = 0; i < count && i < kPools && !found; ++i) {
    const void* known = __atomic_load_n(&g_pools[i].self, __ATOMIC_ACQUIRE);
    if (known == self && g_pools[i].table == table) found = &g_pools[i];
  }
  if (!found && count < kPools) found = add_pool(self, table, size_is_requested);
  if (found) t->last_pool = found;
  return found;
}

// ---- The name of the operation -----------------------------------------------------------------

/// ScopedMemoryDebugAnnotation::ThreadMemoryDebugAnnotation(), which keeps what the thread works
/// on, profiler or not. Up to 2.16 it begins {const char* op; int64 step; …}, from then on
/// {string_view op; int64 step; …}, and a string_view begins with its length: no address is that
/// small (vm.mmap_min_addr), no name that long.
using Annotation = const uint64_t* (*)();
Annotation g_annotation;
uint32_t g_annotation_is_known;
void look_for_annotation();
constexpr uint64_t kLeastAddress = 65536;
constexpr size_t kMostName = 1024;

enum Trust : uint32_t { kUntested = 0, kTrusted = 64, kDistrusted = ~0u };
uint32_t g_trust;  // how many names were found sound; below kTrusted they are looked at first

/// Whether the bytes are there and printable. True where the kernel does not allow to ask.
bool is_sound(const char* text, size_t length) {
  struct {
    const void* base;
    size_t length;
  } from{text, length}, to{nullptr, length};
  char copy[kMostName];
  to.base = copy;
  if (g_sandboxed) return true;
  long n = sys(SYS_process_vm_readv, sys(SYS_getpid), sys_ptr(&to), 1, sys_ptr(&from), 1);
  if (n == -1 /* EPERM */ || n == -38 /* ENOSYS */) return true;
  if (n != static_cast<long>(length)) return false;
  for (size_t i = 0; i < length; ++i) {
    if (copy[i] < 0x20 || copy[i] > 0x7e) return false;
  }
  return true;
}

Label current_label(ThreadState* t) {
  Label label{"<tensorflow>", nullptr, 0};
  uint32_t trust = __atomic_load_n(&g_trust, __ATOMIC_RELAXED);
  if (trust == kDistrusted) return label;
  if (__builtin_expect(!t->annotation, 0)) {
    if (!__atomic_load_n(&g_annotation_is_known, __ATOMIC_ACQUIRE)) look_for_annotation();
    if (!g_annotation) return label;
    t->annotation = g_annotation();
    if (!t->annotation) return label;
  }
  const uint64_t* words = t->annotation;
  if (words[0] == 0) return label;
  bool is_view = words[0] < kLeastAddress;
  label.text = reinterpret_cast<const char*>(words[is_view ? 1 : 0]);
  if (is_view && (words[1] < kLeastAddress)) return label;
  size_t length = is_view ? words[0] : strnlen(label.text, kMostName);
  if (length > kMostName) length = kMostName;
  if (__builtin_expect(trust < kTrusted, 0)) {
    bool sound = is_sound(label.text, length);
    __atomic_store_n(&g_trust, sound ? trust + 1 : uint32_t{kDistrusted}, __ATOMIC_RELAXED);
    if (!sound) return label;
  }
  label.length = static_cast<uint32_t>(length);
  return label;
}

__attribute__((noinline, cold)) void look_for_annotation() {
  constexpr const char* kNames[] = {
      "_ZN3tsl8profiler27ScopedMemoryDebugAnnotation27ThreadMemoryDebugAnnotationEv",
      "_ZN10tensorflow8profiler27ScopedMemoryDebugAnnotation27ThreadMemoryDebugAnnotationEv"};
  void* found = nullptr;
  for (int i = 0; i < 2 && !found; ++i) found = find_real(kNames[i], nullptr, kLibrary);
  g_annotation = reinterpret_cast<Annotation>(found);  // a race writes the same value twice
  __atomic_store_n(&g_annotation_is_known, 1, __ATOMIC_RELEASE);
}

// ---- Events ------------------------------------------------------------------------------------

inline bool is_wanted() { return state() != kOff || is_counting(); }
inline bool is_recorded(const Memory& memory) {
  return state() != kOff && !(g_config.no_cpu && memory.device.type == kCpuType);
}

void on_alloc(ThreadState* t, const Memory& memory, void* p, size_t size, size_t requested) {
  uint64_t address = reinterpret_cast<uintptr_t>(p);
  if (is_counting()) count_alloc(address, size, memory.device);
  if (!is_recorded(memory)) return;
  record_in(kRawAlloc, address, size, memory, current_label(t), requested == size ? 0 : requested);
}

void on_refused(ThreadState* t, const Memory& memory, size_t size) {
  if (size && is_recorded(memory)) record_in(kRawOom, 0, size, memory, current_label(t));
}

/// Before the real free: afterwards another thread may be given the address, and its allocation
/// would come first.
void on_free(const Memory& memory, const void* p) {
  uint64_t address = reinterpret_cast<uintptr_t>(p);
  if (is_counting()) count_free(address, memory.device);
  if (is_recorded(memory)) record_in(kRawFreeCompleted, address, 0, memory, Label{});
}

/// Which addresses are regions, and of whose: a region is freed outside the pool's functions too.
/// A pool doubles its regions, so there are few. An entry's `base` is 0 while nobody has it.
struct Region {
  uint64_t base;
  const Memory* memory;
};
constexpr uint32_t kRegions = 512;
Region g_regions[kRegions];
uint32_t g_region_end;  // entries that were ever used
constexpr uint64_t kBeingFilled = 1;

void on_region(ThreadState* t, void* p, size_t size) {
  if (!p || p == t->region) return;
  t->region = p;
  uint64_t base = reinterpret_cast<uintptr_t>(p);
  const Memory* memory = t->pool ? &t->pool->regions : &kNoPoolRegions;
  for (uint32_t i = 0; i < kRegions; ++i) {
    uint64_t none = 0;
    if (__atomic_load_n(&g_regions[i].base, __ATOMIC_RELAXED) ||
        !__atomic_compare_exchange_n(&g_regions[i].base, &none, kBeingFilled, false,
                                     __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
      continue;
    }
    g_regions[i].memory = memory;
    __atomic_store_n(&g_regions[i].base, base, __ATOMIC_RELEASE);
    uint32_t end = __atomic_load_n(&g_region_end, __ATOMIC_RELAXED);
    while (end < i + 1 && !__atomic_compare_exchange_n(&g_region_end, &end, i + 1, false,
                                                       __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
    }
    if (is_recorded(*memory)) record_in(kRawAlloc, base, size, *memory, current_label(t));
    return;
  }
  if (is_recorded(*memory)) count_loss(kLostWide);
}

/// True where `p` is a region: then its free is recorded.
bool on_region_free(ThreadState* t, const void* p) {
  if (p == t->freed_region) return t->freed_region = nullptr, true;
  uint64_t base = reinterpret_cast<uintptr_t>(p);
  uint32_t end = __atomic_load_n(&g_region_end, __ATOMIC_ACQUIRE);
  for (uint32_t i = 0; i < end; ++i) {
    if (__atomic_load_n(&g_regions[i].base, __ATOMIC_ACQUIRE) != base) continue;
    const Memory* memory = g_regions[i].memory;
    if (is_recorded(*memory)) record_in(kRawFreeCompleted, base, 0, *memory, Label{});
    __atomic_store_n(&g_regions[i].base, 0, __ATOMIC_RELEASE);
    if (t->region == p) t->region = nullptr;
    return true;
  }
  return false;
}

// ---- What the hooks do -------------------------------------------------------------------------

inline bool is_ours(const Client* client) {
  return __atomic_load_n(&client->verdict, __ATOMIC_RELAXED) == kOfFramework && is_wanted();
}

/// `has_sizes`: the pool says how large a block is in truth.
void* pool_allocate(FunctionIndex which, FunctionIndex size_of, void* self, size_t alignment,
                    size_t bytes, const void* attributes) {
  Client* client = g_clients.of(table_of(self));
  auto allocate = g_clients.real<Allocate>(client, which);
  ThreadState* t = &t_state;
  if (!is_ours(client)) return allocate(self, alignment, bytes, attributes);
  bool has_sizes = size_of != kFunctions;
  const Pool* pool = pool_of(t, self, !has_sizes);
  const char* outer_frame = t->pool_frame;
  const Pool* outer_pool = t->pool;
  t->pool_frame = static_cast<const char*>(__builtin_frame_address(0));
  t->pool = pool;
  void* p = allocate(self, alignment, bytes, attributes);
  t->pool_frame = outer_frame;
  t->pool = outer_pool;
  const Memory& memory = pool ? pool->blocks : kNoPool;
  if (!p) return on_refused(t, memory, bytes), p;
  size_t size = has_sizes ? g_clients.real<Size>(client, size_of)(self, p) : 0;
  on_alloc(t, memory, p, size ? size : bytes, bytes);
  return p;
}

void pool_deallocate(FunctionIndex which, bool has_sizes, void* self, void* p) {
  Client* client = g_clients.of(table_of(self));
  auto deallocate = g_clients.real<Deallocate>(client, which);
  if (p && is_ours(client)) {
    const Pool* pool = pool_of(&t_state, self, !has_sizes);
    on_free(pool ? pool->blocks : kNoPool, p);
  }
  deallocate(self, p);
}

/// Of a block that was just made.
void after_malloc(ThreadState* t, void* p, size_t size) {
  if (p == t->freed_region) t->freed_region = nullptr;
  if (is_inside(t->pool_frame)) {
    on_region(t, p, size);
  } else if (p) {
    on_alloc(t, kAligned, p, size, size);
  } else {
    on_refused(t, kAligned, size);
  }
}

/// True where this call is the one to be told of.
inline bool before_free(Client* client, void* p) {
  ThreadState* t = &t_state;
  if (!p || t->freeing == p || !is_ours(client)) return false;
  if (!on_region_free(t, p)) on_free(kAligned, p);
  t->freeing = p;
  return true;
}

#define CALLER g_clients.of(__builtin_return_address(0))

void* aligned_malloc(Client* client, FunctionIndex which, size_t size, size_t alignment) {
  auto allocate = g_clients.real<void* (*)(size_t, size_t)>(client, which);
  ThreadState* t = &t_state;
  if (!is_ours(client) || is_inside(t->malloc_frame)) return allocate(size, alignment);
  t->malloc_frame = static_cast<const char*>(__builtin_frame_address(0));
  void* p = allocate(size, alignment);
  t->malloc_frame = nullptr;
  after_malloc(t, p, size);
  return p;
}

void aligned_free(Client* client, FunctionIndex which, void* p, size_t a, size_t b) {
  auto release = g_clients.real<void (*)(void*, size_t, size_t)>(client, which);
  bool is_told = before_free(client, p);
  release(p, a, b);
  if (is_told) t_state.freeing = nullptr;
}

}  // namespace
}  // namespace gpumemprof::probe

using namespace gpumemprof::probe;

void* gpumemprof_tf_bfc_allocate(void* self, size_t alignment, size_t bytes, const void* attr) {
  return pool_allocate(kBfcAllocate, kBfcSize, self, alignment, bytes, attr);
}
void gpumemprof_tf_bfc_deallocate(void* self, void* p) {
  pool_deallocate(kBfcDeallocate, true, self, p);
}
void* gpumemprof_tf_old_allocate(void* self, size_t alignment, size_t bytes, const void* attr) {
  return pool_allocate(kOldBfcAllocate, kOldBfcSize, self, alignment, bytes, attr);
}
void gpumemprof_tf_old_deallocate(void* self, void* p) {
  pool_deallocate(kOldBfcDeallocate, true, self, p);
}
// The driver's pool does not say how it rounds, so what was asked for is what is known.
void* gpumemprof_tf_async_allocate(void* self, size_t alignment, size_t bytes) {
  return pool_allocate(kAsyncAllocate, kFunctions, self, alignment, bytes, nullptr);
}
void gpumemprof_tf_async_deallocate(void* self, void* p) {
  pool_deallocate(kAsyncDeallocate, false, self, p);
}
void* gpumemprof_tf_malloc(size_t size, size_t alignment) {
  return aligned_malloc(CALLER, kMalloc, size, alignment);
}
void* gpumemprof_tf_int_malloc(size_t size, int alignment) {
  return aligned_malloc(CALLER, kIntMalloc, size, static_cast<size_t>(alignment));
}
void* gpumemprof_tf_old_malloc(size_t size, int alignment) {
  return aligned_malloc(CALLER, kOldMalloc, size, static_cast<size_t>(alignment));
}
void gpumemprof_tf_free(void* p) { aligned_free(CALLER, kFree, p, 0, 0); }
void gpumemprof_tf_old_free(void* p) { aligned_free(CALLER, kOldFree, p, 0, 0); }
void gpumemprof_tf_sized_free(void* p, size_t size, size_t alignment) {
  aligned_free(CALLER, kSizedFree, p, size, alignment);
}
void gpumemprof_tf_int_sized_free(void* p, size_t alignment, size_t size) {
  aligned_free(CALLER, kIntSizedFree, p, alignment, size);
}
void gpumemprof_tf_visit_alloc(void* self, void* p, int index, size_t bytes) {
  Client* client = g_clients.of(table_of(self));
  g_clients.real<void (*)(void*, void*, int, size_t)>(client, kVisitAlloc)(self, p, index, bytes);
  if (is_ours(client) && is_inside(t_state.pool_frame)) on_region(&t_state, p, bytes);
}
void gpumemprof_tf_visit_free(void* self, void* p, int index, size_t bytes) {
  Client* client = g_clients.of(table_of(self));
  auto visit = g_clients.real<void (*)(void*, void*, int, size_t)>(client, kVisitFree);
  if (is_ours(client) && on_region_free(&t_state, p)) t_state.freed_region = p;
  visit(self, p, index, bytes);
}

namespace gpumemprof::probe {
namespace {

#define TF_HOOK(i)                 \
  {kTable[i].name, kTable[i].ours, \
   [] { return find_real(kTable[i].name, kTable[i].ours, kLibrary); }, kTable[i].is_alloc}
const Hook kHookList[] = {TF_HOOK(kBfcAllocate),    TF_HOOK(kBfcDeallocate),
                          TF_HOOK(kOldBfcAllocate), TF_HOOK(kOldBfcDeallocate),
                          TF_HOOK(kAsyncAllocate),  TF_HOOK(kAsyncDeallocate),
                          TF_HOOK(kMalloc),         TF_HOOK(kIntMalloc),
                          TF_HOOK(kOldMalloc),      TF_HOOK(kFree),
                          TF_HOOK(kOldFree),        TF_HOOK(kSizedFree),
                          TF_HOOK(kIntSizedFree),   TF_HOOK(kVisitAlloc),
                          TF_HOOK(kVisitFree)};

/// Asks the CPU's allocator, which needs neither Python nor a device that is set up.
int ask_tensorflow() {
  void* found = find_real("_ZN3tsl18cpu_allocator_baseEv", nullptr, kLibrary);
  if (!found) found = find_real("_ZN10tensorflow18cpu_allocator_baseEv", nullptr, kLibrary);
  void* allocator = found ? reinterpret_cast<void* (*)()>(found)() : nullptr;
  if (!allocator) return -1;
  t_scopes.test_address = 0;
  t_scopes.test = kTestAwaited;
  using AllocateOnly = void* (*)(void*, size_t, size_t);
  void* p = virtual_function<AllocateOnly>(allocator, kSlotAllocate)(allocator, 64, kTestBytes);
  int answer = p && reinterpret_cast<uintptr_t>(p) == t_scopes.test_address;
  if (p) virtual_function<Deallocate>(allocator, kSlotDeallocate)(allocator, p);
  t_scopes.test = kNoTest;
  return answer;
}

Framework g_tensorflow{
    kHookList,
    sizeof(kHookList) / sizeof(kHookList[0]),
    "no class's table leads to tsl::BFCAllocator (libtensorflow_framework linked with -Bsymbolic)",
    ask_tensorflow,
    "a tensor's memory did not come from tsl::port::AlignedMalloc: another allocator is in use",
    nullptr};

__attribute__((constructor)) void enter() { enter_framework(&g_tensorflow); }

}  // namespace
}  // namespace gpumemprof::probe
