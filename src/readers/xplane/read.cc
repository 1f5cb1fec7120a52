#include "readers/xplane/read.h"

#include "readers/xplane/fields.h"
#include "readers/xplane/space.h"

namespace gpumemprof {
namespace {

constexpr uint64_t kLeastMemoryBytes = 256 << 20;
constexpr size_t kMostComplaint = 256;

/// What the profiler itself says: that it dropped events, that a device was not profiled.
void take_complaint(std::string_view text, Loss* loss) {
  constexpr size_t kMostComplaints = 16;
  if (loss->reasons.size() == kMostComplaints) return;
  loss->add(0, 0, "the profiler says: " + std::string(text.substr(0, kMostComplaint)));
}

Status read_space(std::string_view bytes, xplane::Space* space) {
  using namespace xplane;
  std::string_view host;  // behind the planes
  ProtobufFields names(bytes);
  while (names.next()) {
    if (names.number() == field::kHostNames && host.empty()) host = names.bytes();
    if (names.number() == field::kErrors || names.number() == field::kWarnings)
      take_complaint(names.bytes(), &space->loss);
  }
  if (auto status = names.status(); !status) return status;
  ProtobufFields planes(bytes);
  while (planes.next()) {
    if (planes.number() != field::kPlanes) continue;
    const Status done = read_plane(planes.bytes(), planes.value_offset(), host, space);
    if (!done) return done;
  }
  return planes.status();
}

}  // namespace

Result<std::unique_ptr<EventSource>> read_xplane(File& file, const XplaneLimits& limits) {
  auto bytes = read_protobuf_file(file);
  if (!bytes) return std::unexpected(bytes.error());
  xplane::Space space(limits.memory_bytes != 0 ? limits.memory_bytes
                                               : kLeastMemoryBytes + 2 * bytes->size());
  if (auto done = read_space(*bytes, &space); !done) return std::unexpected(done.error());
  return xplane::make_source(std::move(space), file.path(), bytes->size());
}

}  // namespace gpumemprof
