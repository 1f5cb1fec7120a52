// Marks both ends of gloo's collectives: no rank leaves one before all have entered it, which aligns
// clocks and shows who comes last. A thread of the process group does the work, so what is marked
// is the work itself, whatever asked for it: DistributedDataParallel's reducer, FSDP, Python.
//
// GPUMEMPROF_COLLECTIVES=0 leaves them out. A program of gloo may end in std::terminate with this and
// without: a worker that still holds a finished work asks for the GIL while CPython before 3.14
// finalizes (pytorch issue 190489); 3 of 24 plain runs of a tensor-parallel one did on a busy machine.
//
// Only groups of all ranks, and only what the framework numbers alike on each.
#include "format/format.h"
#include "probe/dynamic.h"
#include "probe/hooks/torch_parts.h"
#include "probe/python_frames.h"
#include "probe/recorder.h"
#include "probe/stream.h"
#include "probe/sys.h"

#define HOOK extern "C" __attribute__((visibility("default")))
#define RUN_LOOP "_ZN4c10d16ProcessGroupGloo7runLoopEi"
#define EXECUTE(by)                                                                     \
  "_ZN4c10d16ProcessGroupGloo9AsyncWork7executeE" by                                    \
  "N3c1013intrusive_ptrIS1_NS2_6detail34intrusive_target_default_null_typeIS1_EEEE"
#define EXECUTE_REFERENCE EXECUTE("RK")
#define EXECUTE_VALUE EXECUTE("")  // before 2.1
#define FINISH "_ZN4c10d16ProcessGroupGloo9AsyncWork14finishWorkGlooEv"
#define OP_TYPE "_ZNK4c10d4Work14retrieveOpTypeEv"
#define NUMBER "_ZNK4c10d16ProcessGroupGloo9AsyncWork17getSequencenumberEv"

namespace gpumemprof::probe {
namespace {

using RunLoop = void (*)(void* group, int worker);
using Execute = void (*)(void* const* work);
using Finish = void (*)(void* work);
using OpType = uint8_t (*)(const void* work);
using Number = uint64_t (*)(const void* work);

// c10d::OpType: those whose result depends on every rank. SEND and RECV are no AsyncWork.
constexpr uint32_t kNeedsAll = 1u << 1 | 1u << 2 | 1u << 4 | 1u << 5 | 1u << 6 | 1u << 9 |
                               1u << 10 | 1u << 11 | 1u << 15 | 1u << 16;
constexpr uint8_t kOpTypes = 32;

RunLoop g_run_loop;
Execute g_execute_reference, g_execute_value;
Finish g_finish;
OpType g_op_type;
Number g_number;

/// A group of all ranks, and which of its threads have begun: one that begins again is that of a
/// later group at the same address.
struct Group {
  const void* at;
  uint64_t workers;
};
Group g_groups[format::kMostGroups];
uint32_t g_group_count;
uint32_t g_lock;  // held for some ns, by threads that begin
thread_local uint32_t t_group __attribute__((tls_model("initial-exec")));  // its number + 1; 0: none

/// c10d::Backend after the table of virtual functions and the reference count: rank and size, never
/// changed. What is not the job's size is no group of all ranks, or of another shape.
bool is_of_all_ranks(const void* group) {
  constexpr uint32_t kMostRanks = 1u << 20;
  const auto rank = load<uint32_t>(group, 16), size = load<uint32_t>(group, 20);
  if (g_config.rank_plus_one == 0 && size > 1 && size <= kMostRanks && rank < size)
    tell_own_rank(rank, size);
  return size > 1 && size == g_config.job.world_size && rank + 1 == g_config.rank_plus_one;
}

uint32_t find_or_add(const void* group, int worker) {
  if (!is_of_all_ranks(group)) return 0;
  const uint64_t mine = uint64_t{1} << worker;
  uint32_t i = g_group_count;
  while (i > 0 && !(g_groups[i - 1].at == group && !(g_groups[i - 1].workers & mine))) --i;
  if (i == 0 && g_group_count < format::kMostGroups) {
    g_groups[g_group_count] = {group, 0};
    i = ++g_group_count;
  }
  if (i != 0) g_groups[i - 1].workers |= mine;
  return i;
}

/// Its number + 1; 0: none, or the lock is not free: a process that was forked while it was held
/// would wait for ever.
uint32_t number_group(const void* group, int worker) {
  constexpr int kMostTries = 10'000;
  if (worker < 0 || worker >= 64) return 0;
  for (int tries = 0; __atomic_exchange_n(&g_lock, 1, __ATOMIC_ACQUIRE); sys(SYS_sched_yield))
    if (++tries == kMostTries) return 0;
  const uint32_t number = find_or_add(group, worker);
  __atomic_store_n(&g_lock, 0, __ATOMIC_RELEASE);
  return number;
}

void tell(format::ProcessMark what, uint64_t number) {
  record_mark(format::kMarkRole, 0, format::pack_collective(what, t_group - 1, number), nullptr, 0);
}

/// Whether the work is one to mark; its number.
bool is_marked(void* const* work, uint64_t* number) {
  if (t_group == 0 || !g_config.marks_collectives || state() != kRecording) return false;
  auto op_type = __atomic_load_n(&g_op_type, __ATOMIC_ACQUIRE);
  auto number_of = __atomic_load_n(&g_number, __ATOMIC_ACQUIRE);
  if (!op_type || !number_of) return false;
  const uint8_t op = op_type(*work);
  if (op >= kOpTypes || !(kNeedsAll >> op & 1)) return false;
  *number = number_of(*work);
  return format::is_collective_recorded(*number);
}

/// Of the work that the thread executes, where it is marked: its number + 1.
thread_local uint64_t t_number __attribute__((tls_model("initial-exec")));

void run(Execute real, void* const* work) {
  uint64_t number = 0;
  if (is_marked(work, &number)) {
    tell(format::kCollectiveBegins, number);
    t_number = number + 1;
  }
  real(work);
  t_number = 0;  // it failed
}

/// Before whoever waits for the work goes on: from then on the program may end at any moment, and
/// nothing of ours must stand between this thread and its own end.
void end() {
  if (t_number == 0) return;
  if (state() == kRecording) tell(format::kCollectiveEnds, t_number - 1);
  t_number = 0;
}

template <class Function>
void* find(Function* slot, const char* name, const void* ours) {
  if (auto known = __atomic_load_n(slot, __ATOMIC_ACQUIRE)) return reinterpret_cast<void*>(known);
  void* found = find_real(name, ours, "libtorch_cpu");
  if (found) __atomic_store_n(slot, reinterpret_cast<Function>(found), __ATOMIC_RELEASE);
  return found;
}

void* find_run_loop();
void* find_execute_reference();
void* find_execute_value();
void* find_finish();

}  // namespace
}  // namespace gpumemprof::probe

HOOK void gpumemprof_hook_run_loop(void*, int) __asm__(RUN_LOOP);
void gpumemprof_hook_run_loop(void* group, int worker) {
  using namespace gpumemprof::probe;
  find(&g_op_type, OP_TYPE, nullptr);
  find(&g_number, NUMBER, nullptr);
  t_group = number_group(group, worker);
  // Somebody called it, so somebody defines it.
  reinterpret_cast<RunLoop>(find_run_loop())(group, worker);
}

HOOK void gpumemprof_hook_execute_reference(void* const*) __asm__(EXECUTE_REFERENCE);
void gpumemprof_hook_execute_reference(void* const* work) {
  using namespace gpumemprof::probe;
  run(reinterpret_cast<Execute>(find_execute_reference()), work);
}

HOOK void gpumemprof_hook_execute_value(void* const*) __asm__(EXECUTE_VALUE);
void gpumemprof_hook_execute_value(void* const* work) {
  using namespace gpumemprof::probe;
  run(reinterpret_cast<Execute>(find_execute_value()), work);
}

HOOK void gpumemprof_hook_finish(void*) __asm__(FINISH);
void gpumemprof_hook_finish(void* work) {
  using namespace gpumemprof::probe;
  end();
  reinterpret_cast<Finish>(find_finish())(work);
}

namespace gpumemprof::probe {
namespace {

void* find_run_loop() {
  return find(&g_run_loop, RUN_LOOP, reinterpret_cast<void*>(&gpumemprof_hook_run_loop));
}
void* find_execute_reference() {
  return find(&g_execute_reference, EXECUTE_REFERENCE,
              reinterpret_cast<void*>(&gpumemprof_hook_execute_reference));
}
void* find_execute_value() {
  return find(&g_execute_value, EXECUTE_VALUE,
              reinterpret_cast<void*>(&gpumemprof_hook_execute_value));
}

void* find_finish() {
  return find(&g_finish, FINISH, reinterpret_cast<void*>(&gpumemprof_hook_finish));
}

}  // namespace

const Hook kCollectiveHooks[4] = {
    {RUN_LOOP, reinterpret_cast<void*>(&gpumemprof_hook_run_loop), find_run_loop, false},
    {EXECUTE_REFERENCE, reinterpret_cast<void*>(&gpumemprof_hook_execute_reference),
     find_execute_reference, false},
    {EXECUTE_VALUE, reinterpret_cast<void*>(&gpumemprof_hook_execute_value), find_execute_value,
     false},
    {FINISH, reinterpret_cast<void*>(&gpumemprof_hook_finish), find_finish, false}};

}  // namespace gpumemprof::probe
