// Holders of tensors: what a process reported of its own live objects, on request, beside its
// recording (holders.PID.START.json; docs/schemas/holders.schema.json).
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace gpumemprof {

/// A library's function that ran on the thread of the look, the process's main one.
struct RunningFunction {
  std::string name, file;  ///< without its class; empty: none
  bool operator==(const RunningFunction&) const = default;
};

/// One name that keeps tensors: a variable, an attribute, a cache, …
struct TensorHolder {
  std::string path;   ///< "losses in train (train.py)", as a person would say it
  std::string name;   ///< "losses", "Net.seen"; empty where nothing in Python holds it
  std::string container;  ///< path of what has the objects that `name` is an attribute of; or empty
  std::string owner;  ///< "variable", "attribute", "module attribute", "metric", "closure", "cache",
                      ///< "hook", "exception", "optimizer", "link", "nothing"
  std::vector<std::string> through;     ///< types between the name and the tensors: "list", "dict"
  uint64_t tensors = 0;                 ///< Python tensors that it holds, without their graphs
  uint64_t with_graph = 0;              ///< of these, results of operations that autograd can undo
  uint64_t scalars = 0;                 ///< of those with a graph, with one element
  uint64_t in_pairs = 0;                ///< of the tensors, in a tuple with one other
  uint64_t storages = 0;                ///< blocks that they and their graphs keep
  uint64_t leaves = 0;                  ///< of these, of graphs' leaves and their gradients alone
  /// Their graph is of parts that lie side by side: what was made late does not lead to what was made
  /// early. False also where nobody says.
  bool side_by_side = false;
  std::vector<std::string> operations;  ///< of their graphs, the commonest first: "AddBackward0"
  RunningFunction function;  ///< of which `name` is a variable: it holds nothing after the call
  uint64_t object_id = 0;  ///< which list, dict or the like `name` leads to; 0: none, or nobody says
  /// Of the deque with a maxlen, or of the list, dict or the like of an object with a capacity, that
  /// everything is in; without a limit most_entries is 0.
  uint64_t entries = 0, most_entries = 0;
  std::string limit;  ///< "ListStorage.max_size", which says that capacity; empty: a deque's maxlen
};

/// One to three tensors, as the state of a layer or two, with a graph of many blocks behind each.
bool is_graph_of_few(const TensorHolder& holder);

/// The process's memory as it was at a look: by the kernel, glibc's malloc, Python and PyTorch.
struct MemoryAtLook {
  uint64_t resident_bytes = 0, anonymous_bytes = 0;
  std::optional<uint64_t> file_bytes, shared_bytes;
  /// Blocks in use, with what malloc has mapped for large ones; free blocks that it has not given back.
  std::optional<uint64_t> malloc_live_bytes, malloc_kept_bytes;
  std::optional<uint64_t> python_arenas_bytes;
  std::string why_no_python_arenas;  ///< empty where nobody says
  /// Of PyTorch's cache of pinned memory: in use, and with what is free.
  std::optional<uint64_t> pinned_used_bytes, pinned_cache_bytes;
};

/// What a process held at one moment.
struct HoldersLook {
  uint64_t time_ns = 0;        ///< CLOCK_MONOTONIC, as the events have it
  std::string why_incomplete;  ///< empty where every tensor was looked at
  bool is_gc_disabled = false;  ///< Python's cyclic collector; false also where nobody says
  std::optional<MemoryAtLook> memory;
  std::vector<TensorHolder> holders;
  /// By the address at which a storage begins, an index of `holders`.
  absl::flat_hash_map<uint64_t, uint32_t> by_address;
  /// By the same address: what all tensors show of it, each counted. Of older files empty.
  absl::flat_hash_map<uint64_t, uint64_t> shown_bytes;
};

struct ProcessHolders {
  uint32_t pid = 0;
  uint64_t start_ticks = 0;
  bool is_worker = false;          ///< a process that multiprocessing started
  std::vector<HoldersLook> looks;  ///< in the order of their times
};

/// Parses the text of such a file. One object has one path in all looks, that of the last: functions
/// that run lead to it by other names than the program's end. Errors: kBadInput with the byte if it
/// is not JSON, without one if it is another file; kUnsupported for a later major version.
Result<ProcessHolders> parse_holders(std::string_view text);

/// All such files in the folders among `paths` and beside the .gmp files among them. Unreadable
/// ones are listed in `problems`, one line each.
std::vector<ProcessHolders> read_holders(const std::vector<std::string>& paths,
                                         std::vector<std::string>* problems);

}  // namespace gpumemprof
