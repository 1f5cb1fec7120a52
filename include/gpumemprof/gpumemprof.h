/* gpumemprof: the C API of the probe.
 *
 * The functions exist in a process that runs under `gpumemprof run`, or that has opened the probe library itself
 * (gpumemprof_attach). Link nothing: they are declared weak, and without the probe their address is null, so guard a
 * call with `if (gpumemprof_stop) gpumemprof_stop();`. All of them may be called from any thread at any time; none
 * of them throws, raises a signal or waits for more than a second. Not for use in a signal handler, but for
 * gpumemprof_read_counters. docs/c-api.md has examples.
 */
#ifndef GPUMEMPROF_GPUMEMPROF_H_
#define GPUMEMPROF_GPUMEMPROF_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GPUMEMPROF_API __attribute__((weak, visibility("default")))

/* ---- Recording ------------------------------------------------------------------------------------------------ */

/* Stops recording in this process. Blocks freed meanwhile are known by a later allocation at their address. Exact
 * counting (below) goes on. */
GPUMEMPROF_API void gpumemprof_stop(void);

/* Goes on recording. Without an earlier stop it does nothing. */
GPUMEMPROF_API void gpumemprof_start(void);

/* Events recorded by this process so far, 0 before the first one. */
GPUMEMPROF_API uint64_t gpumemprof_event_count(void);

/* What the calling thread works on from now on, a layer of a model for example: "sequential/dense". What it allocates
 * carries the name until another one is given; null or "" ends it. Only with stacks, and only in a recording. The text
 * must stay where it is, unchanged, for as long as the process lives; names longer than 1,000 bytes are cut. */
GPUMEMPROF_API void gpumemprof_set_layer(const char *name);

/* After `events` more allocations and frees of this process, without those of host blocks and maps, `add(call,
 * argument)` is called once, on the thread of the last of them: `add` is the interpreter's Py_AddPendingCall, or
 * something else that neither waits nor allocates. 0 ends what was asked for before. */
GPUMEMPROF_API void gpumemprof_call_after(uint64_t events, int (*add)(int (*)(void *), void *), int (*call)(void *),
                                          void *argument);

/* Of the events that led to the last such call: allocations less frees. For what that is asked, a few million either
 * way, it is exact; beyond 8,388,607 it wraps. */
GPUMEMPROF_API int64_t gpumemprof_blocks_until_call(void);

/* Bytes that the interpreter's arenas have in this process, of all its subinterpreters, with the stacks of Python's
 * frames (from 3.11 on), which come from the same allocator. -1 where that is not known, and `*why` says why: it is a
 * clause in English, else "". To be called by a thread that holds the GIL. */
GPUMEMPROF_API int64_t gpumemprof_python_arenas(const char **why);

/* ---- Marks ---------------------------------------------------------------------------------------------------- *
 *
 * What a recording cannot see from inside the allocator. Only in a recording, and between gpumemprof_start() and
 * gpumemprof_stop(); elsewhere they do nothing. Texts are copied, and cut at 1,000 bytes. */

/* A part of the program's run, "evaluation" for example: what the calling thread allocates until the end carries the
 * name of the innermost one that is open on it; of Python's tasks that take turns on a thread each has those that it
 * has begun itself. The end may be told on another thread. Returns a number for it, 0 where nothing is recorded. An
 * empty name is recorded as "(no name)". One that ends while recording is stopped has no end in the recording. Where
 * more than 14 are open on a thread, or 250 in the process, what is allocated carries no phase, and that is counted
 * as lost. */
GPUMEMPROF_API uint64_t gpumemprof_phase_begin(const char *name);
GPUMEMPROF_API void gpumemprof_phase_end(uint64_t phase);

/* A step of the program's loop has ended. Steps of a process are numbered from 0 in the order of these calls, also of
 * those while recording is stopped, which leave a gap. */
GPUMEMPROF_API void gpumemprof_step_end(void);

/* What the storage that begins at `address` is, and its name in the model: "encoder.layers.3.linear1.weight". It holds
 * for the block that is live there now. */
#define GPUMEMPROF_ROLE_PARAMETER 1
#define GPUMEMPROF_ROLE_BUFFER 2
#define GPUMEMPROF_ROLE_GRADIENT 3
#define GPUMEMPROF_ROLE_OPTIMIZER_STATE 4
GPUMEMPROF_API void gpumemprof_mark_storage(const void *address, int role, const char *name);

/* For those who look at all storages again and again, and tell what has changed. First take back what is no longer so
 * and tell what is new; then say that the rest holds: for the blocks that lie at these addresses now, also where they
 * are others than before. Who never says so need take nothing back. */
GPUMEMPROF_API void gpumemprof_unmark_storage(const void *address);
GPUMEMPROF_API void gpumemprof_roles_hold(void);

/* The program's own code has run, and its exit handlers run next: what they free was kept to the end. */
GPUMEMPROF_API void gpumemprof_program_ends(void);

/* The name of the module whose Python object lies at `object`, in stacks the frame `<torch module>`. Until it is told,
 * and where it never is, the frame has the name of the class alone. "" takes it away: the object is gone, and the next
 * one at its address is another. With another name the object must be alive. */
GPUMEMPROF_API void gpumemprof_mark_module(const void *object, const char *path);

/* `call(argument)` is to be made, once, when an allocation comes from a module that nobody has named yet: by the
 * interpreter's main thread between two instructions of Python code, with the GIL held (Py_AddPendingCall). It must
 * return 0. Null ends it. After a call it must be asked for again. */
GPUMEMPROF_API void gpumemprof_when_module_is_new(int (*call)(void *), void *argument);

/* ---- Exact counters ------------------------------------------------------------------------------------------- *
 *
 * Counting is off, and costs a load and a branch an event, until gpumemprof_counting_begin(). From then on every
 * allocation and free of the framework is counted, in one order for all threads (a device's order: that in which its
 * live_bytes changed). A block counts from just after the allocator has handed it out until just before it is given
 * back. live_bytes is exact at every moment. The other fields are exact whenever no thread is inside the allocator;
 * while one is, its own block may be in some of them and not yet in others.
 *
 * A forked child counts too, from zero. A device is c10::DeviceType (0 CPU, 1 CUDA, …) and its index; the CPU has
 * one index, so -1 and 0 are the same. The CPU's numbers include tensors in shared and in mapped memory. Sizes are
 * those of the allocator: of a GPU as its caching allocator rounds them.
 *
 * What TensorFlow allocates is counted apart, as devices of the types below: the host's memory has index 0, a GPU
 * that of its allocator's name (GPU_0_bfc: 0). Sizes are what the pool made of them; where there is no pool, on the
 * CPU, what was asked for. */
#define GPUMEMPROF_TENSORFLOW_CPU 64
#define GPUMEMPROF_TENSORFLOW_GPU 65
#define GPUMEMPROF_TENSORFLOW_OTHER 66 /* an allocator whose name says neither; index -1 */
/* What JAX allocates on the CPU, as it was asked for; index 0. */
#define GPUMEMPROF_JAX_CPU 72
struct gpumemprof_counters {
  uint64_t live_bytes;  /* allocated and not freed, among blocks allocated since counting began */
  uint64_t alloc_count, free_count;  /* of those blocks */
  uint64_t alloc_bytes, free_bytes;
  uint64_t unknown_free_count; /* frees of blocks that are older than counting, or that are in untracked_count */
  uint64_t untracked_count; /* blocks that were not followed to their end: no memory for the table, or their free was
                               not seen. Not 0: the numbers above are not exact. */
};

/* 1 if exact counting is on from now, 0 if it cannot be: the library is neither preloaded nor attached, or the
 * kernel (before 4.14), the processor or a memory limit does not allow it. Once on, it is on for the life of the
 * process, and this does nothing. */
GPUMEMPROF_API int gpumemprof_counting_begin(void);

/* 1 and the numbers, or 0 and zeros where counting is off or nothing is known of the device. */
GPUMEMPROF_API int gpumemprof_read_counters(int device_type, int device_index,
                                            struct gpumemprof_counters *out);

/* ---- Scopes --------------------------------------------------------------------------------------------------- *
 *
 * A scope is open from begin to end. Any thread may have many; they may be nested, overlap, end in any order and on
 * any thread, and none changes what another one shows. Two kinds of numbers:
 *
 * Of the device: start_live, end_live, peak_live. The peak is the highest value that the device's live_bytes had
 * from the moment at which start_live_bytes was read to that of end_live_bytes, both included. It is exact however
 * many threads allocate: the live bytes and their highest value are one 128-bit word, changed as one.
 *
 * Of the scope: own_*. An allocation is a scope's own if the scope's thread made it while the scope was running, that
 * is between begin (or switch_in) and end (or switch_out), and, where the scope has a context, while that was the
 * thread's current one. It is then the own of all running scopes of the thread for which that holds, so of the outer
 * ones as well. A free is a scope's own if it is of a block that was its own, whatever thread frees it, while the
 * scope is open. */
struct gpumemprof_scope_result {
  uint64_t start_live_bytes, end_live_bytes, peak_live_bytes; /* of the device, while the scope was open */
  uint64_t own_alloc_count, own_free_count, own_alloc_bytes, own_free_bytes;
  int64_t own_peak_bytes;   /* highest (own alloc - own free) since begin, >= 0 */
  uint64_t untracked_count; /* as in the counters, during the scope */
};

/* For `context`: the context that is current on the calling thread, which for the code of an asyncio task is the
 * task's own. Where the thread has not entered any, its base context. */
#define GPUMEMPROF_CURRENT_CONTEXT ((const void *)~(uintptr_t)0)

/* Opens a scope that runs on the calling thread. `context`: a PyContext object that the caller keeps alive until the
 * scope ends, GPUMEMPROF_CURRENT_CONTEXT, or null for the thread alone. Returns its id, 0 where it is refused
 * (counting is off, 60 devices are known already, no memory). */
GPUMEMPROF_API uint64_t gpumemprof_scope_begin(int device_type, int device_index, const void *context);

/* The scope's generator or coroutine is suspended: what the thread allocates now is not its own. To be called on the
 * thread on which it runs; elsewhere, and for a scope that is not running, it does nothing. */
GPUMEMPROF_API void gpumemprof_scope_switch_out(uint64_t id);

/* It runs again, on the calling thread, inside the scopes that run there now. Nothing for one that is running. */
GPUMEMPROF_API void gpumemprof_scope_switch_in(uint64_t id);

/* Closes the scope. 0 for an id that is not that of an open scope of this process (also in a forked child, for the
 * scopes of its parent); `out` is then zeroed. Else a sum of: */
#define GPUMEMPROF_SCOPE_OK 1
#define GPUMEMPROF_SCOPE_THREAD_ONLY 2 /* a context was asked for and this Python's are unknown: the thread counted */
GPUMEMPROF_API int gpumemprof_scope_end(uint64_t id, struct gpumemprof_scope_result *out);

/* ---- Attaching ------------------------------------------------------------------------------------------------ *
 *
 * For a process that was not started by `gpumemprof run`: open libgpumemprof_probe.so with dlopen(), then call this.
 * It changes the tables through which the loaded libraries call PyTorch's allocator so that they call us, begins
 * exact counting, and makes PyTorch allocate a block to see that it arrives. Call it after `import torch`, and again
 * after libraries were loaded that call the allocator themselves: what is done already stays as it is. Called before
 * PyTorch is loaded it prepares for that.
 *
 * With a `folder` (made if it is not there; its name must be absolute) the process also records into it, as under
 * `run`. A second folder is refused while the process records. Under `run` it does nothing and returns 1.
 *
 * 1: done. 0: gpumemprof_attach_error() says why, in one line. The library must never be unloaded. */
#define GPUMEMPROF_ATTACH_STACKS_PYTHON 0 /* how to record; without a folder there are no stacks */
#define GPUMEMPROF_ATTACH_STACKS_NATIVE 1
#define GPUMEMPROF_ATTACH_STACKS_BOTH 2
#define GPUMEMPROF_ATTACH_STACKS_NONE 3
#define GPUMEMPROF_ATTACH_NO_CPU 16      /* do not record CPU tensors; they are counted all the same */
#define GPUMEMPROF_ATTACH_FREE_STACKS 32 /* record where blocks are freed, too */
#define GPUMEMPROF_ATTACH_NO_ATTRIBUTION 64 /* no modules, nodes, saved tensors: see run's option */
GPUMEMPROF_API int gpumemprof_attach(const char *folder_or_null, int flags);

/* Why the last attach failed; "" where it did not. Valid for the life of the process. */
GPUMEMPROF_API const char *gpumemprof_attach_error(void);

/* Why nothing of TensorFlow is counted or recorded any more, in words; null where it is. Its counters then stand still,
 * and what they say of the time since is not known. */
GPUMEMPROF_API const char *gpumemprof_tensorflow_unfit(void);

#ifdef __cplusplus
}
#endif

#endif /* GPUMEMPROF_GPUMEMPROF_H_ */
