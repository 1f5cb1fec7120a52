#include "readers/torch_snapshot/read.h"

#include "readers/pickle/machine.h"
#include "readers/torch_snapshot/assemble.h"
#include "readers/torch_snapshot/builder.h"

namespace gpumemprof {
namespace {

constexpr uint64_t kLeastMemoryBytes = 256 << 20;

Result<torch_snapshot::Value> read_values(Window& window, torch_snapshot::Builder& builder,
                                          bool is_pickle, const SnapshotOptions& options) {
  if (!is_pickle) return torch_snapshot::read_json(window, builder, options.on_progress);
  pickle::Machine<torch_snapshot::Builder> machine(window, builder, {});
  return machine.run(options.on_progress);
}

}  // namespace

Result<AllocatorSnapshot> read_torch_snapshot(File& file, const SnapshotOptions& options) {
  auto size = file.size();
  if (!size) return std::unexpected(size.error());
  if (*size == 0) return fail_at(0, "the file is empty");
  uint8_t first = 0;
  if (auto got = file.read_at(0, &first, 1); !got) return std::unexpected(got.error());
  const uint64_t limit = options.limits.memory_bytes != 0 ? options.limits.memory_bytes
                                                          : kLeastMemoryBytes + 2 * *size;
  Window window(file, *size);
  torch_snapshot::Builder builder(limit);
  auto top = read_values(window, builder, first == pickle::kProto, options);
  if (!top) return std::unexpected(top.error());
  auto snapshot = torch_snapshot::assemble(builder, *top, *size);
  if (!snapshot) return snapshot;
  snapshot->info.path = file.path();
  snapshot->info.bytes = *size;
  return snapshot;
}

Result<AllocatorSnapshot> read_torch_snapshot(const std::string& path,
                                              const SnapshotOptions& options) {
  auto file = open_file(path, FileMode::kRead);
  if (!file) return std::unexpected(file.error());
  return read_torch_snapshot(**file, options);
}

}  // namespace gpumemprof
