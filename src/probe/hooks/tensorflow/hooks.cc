// TensorFlow: what stands in for its functions (functions.h).
#include "probe/framework.h"
#include "probe/hooks/host/host.h"
#include "probe/hooks/tensorflow/events.h"
#include "probe/hooks/tensorflow/functions.h"
#include "probe/hooks/tensorflow/trial.h"
#include "probe/scopes.h"

#define HOOK extern "C" __attribute__((visibility("default")))

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
// The last one is a std::function: passed by its address, as every class that is not trivial.
HOOK void gpumemprof_tf_compute_async(void*, void*, void*, void*) __asm__(COMPUTE_ASYNC);

namespace gpumemprof::probe::tensorflow {
namespace {

extern "C" int posix_memalign(void**, size_t, size_t);
extern "C" void free(void*);

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
StringView no_name(void*) { return {}; }

}  // namespace

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
    {COMPUTE_ASYNC, ADDRESS(gpumemprof_tf_compute_async), ADDRESS(nothing), false},
    {BFC_SIZE, nullptr, ADDRESS(no_size), false},
    {OLD_BFC_SIZE, nullptr, ADDRESS(no_size), false},
    {"TF_GetOpKernelName", nullptr, ADDRESS(no_name), false},
};

// Of a custom build everything may lie in one object; all of them have "tensorflow" in the name.
constinit Clients g_clients(kTable, kLibrary, "tensorflow");
static_assert(kFunctions <= kMostSharedNames);

namespace {

// ---- What the hooks do -------------------------------------------------------------------------

/// Out of line: nothing is recorded or counted now, or the trial failed.
__attribute__((noinline, cold)) bool leave_alone() {
  if (is_fit()) {
    forget_trial();
  } else if (state() == kRecording) {
    count_loss(static_cast<LossKind>(g_unfit - 1));
  }
  return false;
}

inline bool is_ours(const Client* client) {
  if (__atomic_load_n(&client->verdict, __ATOMIC_RELAXED) != kOfFramework) return false;
  return __builtin_expect(is_wanted() && is_fit(), 1) || leave_alone();
}

template <const PoolKind& kind>
void* pool_allocate(void* self, size_t alignment, size_t bytes, const void* attributes) {
  Client* client = g_clients.of(table_of(self));
  auto allocate = g_clients.real<Allocate>(client, kind.allocate);
  ThreadState* t = &t_state;
  if (!is_ours(client)) return allocate(self, alignment, bytes, attributes);
  const Pool* pool = pool_of(&t->last_pool, client, self, kind);
  const char* outer_frame = t->pool_frame;
  const Pool* outer_pool = t->pool;
  t->pool_frame = static_cast<const char*>(__builtin_frame_address(0));
  t->pool = pool;
  void* p = allocate(self, alignment, bytes, attributes);
  t->pool_frame = outer_frame;
  t->pool = outer_pool;
  if (!is_fit()) return p;
  const Memory& memory = pool ? pool->blocks : kNoPool;
  if (!p) return on_refused(t, memory, bytes), p;
  constexpr bool has_sizes = kind.size != kFunctions;
  size_t size = has_sizes ? g_clients.real<Size>(client, kind.size)(self, p) : 0;
  saw_alloc(kind.kind, p);
  on_alloc(t, memory, p, size ? size : bytes, bytes);
  return p;
}

template <const PoolKind& kind>
void pool_deallocate(void* self, void* p) {
  Client* client = g_clients.of(table_of(self));
  auto deallocate = g_clients.real<Deallocate>(client, kind.deallocate);
  if (p && is_ours(client)) {
    ThreadState* t = &t_state;
    const Pool* pool = pool_of(&t->last_pool, client, self, kind);
    saw_free(kind.kind, p);
    if (is_fit()) on_free(pool ? pool->blocks : kNoPool, p);
  }
  deallocate(self, p);
}

/// Of a block that was just made. `owner`: of an object of TensorFlow's own, else null.
ALWAYS_INLINE void after_malloc(ThreadState* t, void* p, size_t size, const char* owner) {
  if (p == t->freed_region) t->freed_region = nullptr;
  if (is_inside(t->pool_frame)) {
    on_region(t, p, size);
  } else if (p) {
    saw_alloc(kOfAligned, p);
    owner ? on_own_alloc(t, p, size, owner) : on_alloc(t, kAligned, p, size, size);
  } else {
    on_refused(t, kAligned, size);
  }
}

/// True where this call is the one to be told of.
ALWAYS_INLINE bool before_free(Client* client, void* p) {
  ThreadState* t = &t_state;
  if (!p || t->freeing == p || !is_ours(client)) return false;
  if (!on_region_free(t, p)) {
    saw_free(kOfAligned, p);
    on_free(kAligned, p);
  }
  t->freeing = p;
  return true;
}

#define CALLER g_clients.of(__builtin_return_address(0))

ALWAYS_INLINE void* aligned_malloc(const void* caller, FunctionIndex which, size_t size,
                                   size_t alignment) {
  Client* client = g_clients.of(caller);
  auto allocate = g_clients.real<void* (*)(size_t, size_t)>(client, which);
  ThreadState* t = &t_state;
  if (!is_ours(client) || is_inside(t->malloc_frame)) return allocate(size, alignment);
  t->malloc_frame = static_cast<const char*>(__builtin_frame_address(0));
  void* p;
  {
    FrameworkTakes its_own;
    p = allocate(size, alignment);
  }
  t->malloc_frame = nullptr;
  after_malloc(t, p, size, owner_of(client, caller, &t->tensor_caller));
  return p;
}

ALWAYS_INLINE void aligned_free(Client* client, FunctionIndex which, void* p, size_t a, size_t b) {
  auto release = g_clients.real<void (*)(void*, size_t, size_t)>(client, which);
  bool is_told = before_free(client, p);
  release(p, a, b);
  if (is_told) t_state.freeing = nullptr;
}

}  // namespace
}  // namespace gpumemprof::probe::tensorflow

using namespace gpumemprof::probe;
using namespace gpumemprof::probe::tensorflow;

void* gpumemprof_tf_bfc_allocate(void* self, size_t alignment, size_t bytes, const void* attr) {
  return pool_allocate<kBfc>(self, alignment, bytes, attr);
}
void gpumemprof_tf_bfc_deallocate(void* self, void* p) { pool_deallocate<kBfc>(self, p); }
void* gpumemprof_tf_old_allocate(void* self, size_t alignment, size_t bytes, const void* attr) {
  return pool_allocate<kOldBfc>(self, alignment, bytes, attr);
}
void gpumemprof_tf_old_deallocate(void* self, void* p) { pool_deallocate<kOldBfc>(self, p); }
void* gpumemprof_tf_async_allocate(void* self, size_t alignment, size_t bytes) {
  return pool_allocate<kAsync>(self, alignment, bytes, nullptr);
}
void gpumemprof_tf_async_deallocate(void* self, void* p) { pool_deallocate<kAsync>(self, p); }
void* gpumemprof_tf_malloc(size_t size, size_t alignment) {
  return aligned_malloc(__builtin_return_address(0), kMalloc, size, alignment);
}
void* gpumemprof_tf_int_malloc(size_t size, int alignment) {
  return aligned_malloc(__builtin_return_address(0), kIntMalloc, size,
                        static_cast<size_t>(alignment));
}
void* gpumemprof_tf_old_malloc(size_t size, int alignment) {
  return aligned_malloc(__builtin_return_address(0), kOldMalloc, size,
                        static_cast<size_t>(alignment));
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
void gpumemprof_tf_compute_async(void* self, void* kernel, void* context, void* done) {
  Client* client = g_clients.of(table_of(self));
  auto compute = g_clients.real<void (*)(void*, void*, void*, void*)>(client, kComputeAsync);
  if (!is_ours(client)) return compute(self, kernel, context, done);
  ThreadState* t = &t_state;
  const char* outer_frame = t->async_frame;
  const StringView outer_name = t->async_name;
  StringView name = g_clients.real<KernelName>(client, kKernelName)(context);
  if (name.length > kMostName) name.length = kMostName;
  t->async_name = name;
  t->async_frame = static_cast<const char*>(__builtin_frame_address(0));
  compute(self, kernel, context, done);
  t->async_frame = outer_frame;
  t->async_name = outer_name;
}

namespace gpumemprof::probe::tensorflow {
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
                          TF_HOOK(kVisitFree),      TF_HOOK(kComputeAsync)};

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
  bool has_come = p && reinterpret_cast<uintptr_t>(p) == t_scopes.test_address;
  if (p) virtual_function<Deallocate>(allocator, kSlotDeallocate)(allocator, p);
  bool has_gone = t_scopes.test == kTestOver;
  t_scopes.test = kNoTest;
  return has_come && has_gone && is_fit();
}

Framework g_tensorflow{
    kHookList,
    sizeof(kHookList) / sizeof(kHookList[0]),
    "no class's table leads to tsl::BFCAllocator (libtensorflow_framework linked with -Bsymbolic)",
    ask_tensorflow,
    "a tensor's memory did not come from tsl::port::AlignedMalloc, or was not freed through its "
    "counterpart: another allocator is in use",
    nullptr};

__attribute__((constructor)) void enter() { enter_framework(&g_tensorflow); }

}  // namespace
}  // namespace gpumemprof::probe::tensorflow
