#include "devices/cgroup_memory.h"

#include <algorithm>
#include <initializer_list>

#include "devices/proc_text.h"

namespace gpumemprof {
namespace {

Quantity stat_field(const std::string& text, const char* key) {
  const auto bytes = line_number(text, key);
  return bytes ? Quantity::of(*bytes)
               : Quantity::absent(std::string("the cgroup's memory.stat has no ") + key);
}

/// The sum of those lines that are there; absent where none is.
Quantity stat_sum(const std::string& text, std::initializer_list<const char*> keys) {
  std::optional<uint64_t> sum;
  for (const char* key : keys) {
    uint64_t more = 0;
    if (const auto bytes = line_number(text, key);
        bytes && !__builtin_add_overflow(sum.value_or(0), *bytes, &more))
      sum = more;
  }
  return sum ? Quantity::of(*sum)
             : Quantity::absent(std::string("the cgroup's memory.stat has no ") + *keys.begin());
}

Quantity without(const Quantity& all, const Quantity& part) {
  if (!all || !part) return all ? part : all;
  return Quantity::of(*all.bytes - std::min(*all.bytes, *part.bytes));
}

Quantity file_number(const std::string& path, const char* what) {
  const auto bytes = whole_number(read_proc_text(path));
  return bytes ? Quantity::of(*bytes)
               : Quantity::absent(std::string("the cgroup does not report its ") + what);
}

Known<uint64_t> event_count(const std::string& text, const char* key) {
  const auto count = line_number(text, key);
  return count ? Known<uint64_t>::of(*count)
               : Known<uint64_t>::absent("the cgroup does not count it");
}

}  // namespace

CgroupMemory read_cgroup_memory(const HostMemory& host) {
  CgroupMemory out;
  const std::string& folder = host.cgroup_folder;
  if (folder.empty()) {
    const Quantity none = Quantity::absent("no cgroup counts this process's memory");
    out.usage = out.anonymous = out.file = out.shared = out.kernel = out.reclaimable =
        out.swapped = none;
    out.limit_hits = out.kills = Known<uint64_t>::absent(none.absent_because);
    return out;
  }
  const std::string stat = read_proc_text(folder + "/memory.stat");
  if (host.cgroup_is_v1) {
    out.usage = file_number(folder + "/memory.usage_in_bytes", "use");
    out.anonymous = stat_field(stat, "total_rss");
    out.shared = stat_field(stat, "total_shmem");
    out.file = without(stat_field(stat, "total_cache"), out.shared);
    out.reclaimable = stat_sum(stat, {"total_inactive_file", "total_active_file"});
    out.kernel = file_number(folder + "/memory.kmem.usage_in_bytes", "kernel memory");
    out.swapped = stat_field(stat, "total_swap");
    const auto hits = whole_number(read_proc_text(folder + "/memory.failcnt"));
    out.limit_hits = hits ? Known<uint64_t>::of(*hits)
                          : Known<uint64_t>::absent("the cgroup does not count it");
    out.kills = event_count(read_proc_text(folder + "/memory.oom_control"), "oom_kill");
    return out;
  }
  out.usage = file_number(folder + "/memory.current", "use");
  out.anonymous = stat_field(stat, "anon");
  out.shared = stat_field(stat, "shmem");
  out.file = without(stat_field(stat, "file"), out.shared);  // its "file" has tmpfs in it
  out.reclaimable = stat_sum(stat, {"inactive_file", "active_file"});
  // One line from 5.18 on.
  out.kernel = line_number(stat, "kernel")
                   ? stat_sum(stat, {"kernel", "sock"})
                   : stat_sum(stat, {"kernel_stack", "pagetables", "percpu", "slab", "sock"});
  out.swapped = file_number(folder + "/memory.swap.current", "swap");
  const std::string events = read_proc_text(folder + "/memory.events");
  out.limit_hits = event_count(events, "max");
  out.kills = event_count(events, "oom_kill");
  return out;
}

}  // namespace gpumemprof
