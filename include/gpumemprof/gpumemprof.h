/* gpumemprof: the C API of the probe.
 *
 * The functions exist in a process that runs under `gpumemprof run`. Link nothing: they are declared weak, and
 * without the probe their address is null, so guard a call with `if (gpumemprof_stop) gpumemprof_stop();`.
 * All of them may be called from any thread at any time; none of them fails or blocks.
 */
#ifndef GPUMEMPROF_GPUMEMPROF_H_
#define GPUMEMPROF_GPUMEMPROF_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GPUMEMPROF_API __attribute__((weak, visibility("default")))

/* Stops recording in this process. Blocks freed meanwhile are known by a later allocation at their address. */
GPUMEMPROF_API void gpumemprof_stop(void);

/* Goes on recording. Without an earlier stop it does nothing. */
GPUMEMPROF_API void gpumemprof_start(void);

/* Events recorded by this process so far, 0 before the first one. */
GPUMEMPROF_API uint64_t gpumemprof_event_count(void);

#ifdef __cplusplus
}
#endif

#endif /* GPUMEMPROF_GPUMEMPROF_H_ */
