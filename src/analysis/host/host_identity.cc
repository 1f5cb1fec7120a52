#include "analysis/host/host_identity.h"

#include <initializer_list>

namespace gpumemprof {
namespace {

/// `all` less the known ones of `parts`; nothing where `all` is unknown, or no such number exists.
std::optional<int64_t> rest_after(const HostTerm& all, std::initializer_list<const HostTerm*> parts) {
  if (!all.bytes || *all.bytes > INT64_MAX) return std::nullopt;
  auto rest = static_cast<int64_t>(*all.bytes);
  for (const HostTerm* part : parts) {
    if (!part->bytes) continue;
    if (*part->bytes > INT64_MAX ||
        __builtin_sub_overflow(rest, static_cast<int64_t>(*part->bytes), &rest))
      return std::nullopt;
  }
  return rest;
}

}  // namespace

HostIdentity host_identity(const HostMoment& moment) {
  HostIdentity out{moment, {}};
  if (out.pinned.bytes && out.shared.bytes) {
    if (*out.pinned.bytes <= *out.shared.bytes) {
      *out.shared.bytes -= *out.pinned.bytes;
    } else {
      // As on some drivers: the mapping has no pages that the kernel counts.
      out.pinned = HostTerm::unknown(
          "the driver has pinned more than the process has shared pages: the kernel does not count "
          "all of it as resident");
    }
  }
  out.rest_bytes = rest_after(out.resident, {&out.pinned, &out.shared, &out.file, &out.malloc_live,
                                             &out.malloc_kept, &out.python_arenas});
  return out;
}

std::optional<int64_t> rest_of(const CgroupMoment& moment) {
  for (const HostTerm* part : {&moment.anonymous, &moment.file, &moment.shared, &moment.kernel})
    if (!part->bytes) return std::nullopt;
  return rest_after(moment.used,
                    {&moment.anonymous, &moment.file, &moment.shared, &moment.kernel});
}

}  // namespace gpumemprof
