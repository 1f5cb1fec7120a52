#include "picture/accelerators.h"

namespace gpumemprof {

HostTerm host_term(const Quantity& quantity) {
  return quantity ? HostTerm::of(*quantity.bytes) : HostTerm::unknown(quantity.absent_because);
}

HostMoment host_moment(const ProcessMemory& memory, bool may_pin, uint64_t time_ns) {
  const HostTerm not_walked = HostTerm::unknown("a live picture does not walk through pages");
  HostMoment out;
  out.time_ns = time_ns;
  out.resident = host_term(memory.resident), out.anonymous = host_term(memory.anonymous);
  out.file = host_term(memory.file), out.shared = host_term(memory.shared);
  out.swapped = host_term(memory.swapped);
  out.pinned = out.registered =
      may_pin ? HostTerm::unknown("the GPU's driver was not recorded") : HostTerm::of(0);
  out.malloc_live = out.malloc_kept =
      HostTerm::unknown("malloc answers inside the program alone");
  out.python_arenas = HostTerm::unknown("Python answers inside the program alone");
  for (HostTerm* term : {&out.proportional, &out.proportional_anonymous, &out.proportional_file,
                         &out.proportional_shared, &out.private_clean, &out.private_dirty,
                         &out.locked, &out.copied_file})
    *term = not_walked;
  return out;
}

CgroupMoment cgroup_moment(const HostMemory& host, uint64_t time_ns) {
  const CgroupMemory memory = read_cgroup_memory(host);
  return {.time_ns = time_ns,
          .limit = host_term(host.limit),
          .used = host_term(memory.usage),
          .anonymous = host_term(memory.anonymous),
          .file = host_term(memory.file),
          .reclaimable = host_term(memory.reclaimable),
          .shared = host_term(memory.shared),
          .kernel = host_term(memory.kernel),
          .swapped = host_term(memory.swapped)};
}

}  // namespace gpumemprof
