#include "probe/program_end.h"

#include "format/format.h"
#include "probe/hot.h"
#include "probe/recorder.h"
#include "probe/stream.h"

namespace gpumemprof::probe {

HOT_DATA uint32_t g_awaits_program_end;

void await_program_end() { __atomic_store_n(&g_awaits_program_end, 1, __ATOMIC_RELAXED); }

void mark_program_end() {
  if (!__atomic_exchange_n(&g_awaits_program_end, 0, __ATOMIC_RELAXED)) return;
  if (state() != kOff) record_mark(format::kMarkRole, 0, format::kProgramEnds, nullptr, 0);
}

}  // namespace gpumemprof::probe
