// What PyTorch says where /dev/shm has no room: aten/src/ATen/MapAllocator.cpp,
// "unable to write to file </torch_4321_1234567_0>: No space left on device (28)", and
// torch/csrc/DataLoader.cpp of a worker that a bus error ended.
#include "readers/oom_message.h"

namespace gpumemprof {
namespace {

constexpr std::string_view kFile = " file </";  // a name in /dev/shm begins so
constexpr std::string_view kNoSpace = ": No space left on device (28)";
constexpr std::string_view kOfWorkers[] = {"workers are out of shared memory",
                                           "insufficient shared memory (shm)"};
constexpr size_t kMostText = 256;  // bytes

std::optional<OomMessage> parse_shared_memory(std::string_view, std::string_view text) {
  OomMessage message{
      .framework = "pytorch", .backend = "host", .wording = OomWording::kSharedMemory};
  for (std::string_view words : kOfWorkers)
    if (text.starts_with(words)) return message;
  const size_t file = text.substr(0, kMostText).find(kFile);
  if (file == text.npos || !text.substr(file, kMostText).contains(kNoSpace)) return std::nullopt;
  return message;
}

}  // namespace

OomDialect shared_memory_oom_dialect() {
  const std::vector<std::string_view> words = {
      "unable to write to", "unable to resize", "unable to stretch",
      "unable to allocate shared memory", kOfWorkers[0], kOfWorkers[1]};
  return {.keys = words, .beginnings = words, .parse = parse_shared_memory};
}

}  // namespace gpumemprof
