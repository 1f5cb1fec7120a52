#include "probe/program_end.h"

#include "format/format.h"
#include "probe/hot.h"
#include "probe/recorder.h"
#include "probe/stream.h"

namespace gpumemprof::probe {

HOT_DATA uint32_t g_program_end;

static void advance(uint32_t from, ProgramEnd to) {
  __atomic_compare_exchange_n(&g_program_end, &from, to, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

void await_program_end() { advance(kEndIsNotAwaited, kEndIsAwaited); }
void program_has_ended() { advance(kEndIsAwaited, kExitHandlersRun); }

void mark_program_end() {
  if (!__atomic_exchange_n(&g_program_end, kEndIsNotAwaited, __ATOMIC_RELAXED)) return;
  if (state() != kOff) record_mark(format::kMarkRole, 0, format::kProgramEnds, nullptr, 0);
}

}  // namespace gpumemprof::probe
