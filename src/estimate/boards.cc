#include "estimate/boards.h"

#include <cmath>

namespace gpumemprof {
namespace {

constexpr const char* kSeen = "PyTorch's total in a public report of this board";

uint64_t gib(double amount) { return static_cast<uint64_t>(std::floor(amount * (1 << 30))); }

// Every figure of usable memory is what PyTorch printed as the total capacity of such a board in a
// public report; of several the lowest was taken. They differ by some MiB between drivers.
const std::vector<BoardFacts>& table() {
  static const std::vector<BoardFacts> boards = {
      {"NVIDIA T4 16GB", gib(14.75), kSeen},
      {"NVIDIA GeForce RTX 4090 24GB", gib(23.61),
       "PyTorch's totals in public reports of this board, the lower of two"},
      {"NVIDIA GeForce RTX 5090 32GB", gib(31.37), kSeen},
      {"NVIDIA V100 32GB", gib(31.74), kSeen},
      {"NVIDIA A100 40GB", 40536ull << 20,
       "the capacity of the boards that GPUMemNet's tables were measured on"},
      {"NVIDIA L40S 48GB", gib(44.42), "PyTorch's total in a public report of this board, ECC on"},
      {"NVIDIA H100 80GB", gib(79.11), kSeen},
      {"NVIDIA A100 80GB", gib(79.25), kSeen},
      {"NVIDIA H100 NVL 94GB", gib(93.00), kSeen},
      {"NVIDIA B200 180GB", gib(178.35), "the driver's total in a public report of this board"},
  };
  return boards;
}

}  // namespace

std::span<const BoardFacts> known_boards() { return table(); }

const char* verdict_name(FitVerdict verdict) {
  constexpr const char* kNames[] = {"fits", "may fit", "does not fit", "unknown"};
  return kNames[static_cast<size_t>(verdict)];
}

std::optional<PredictedBytes> bytes_that_must_fit(const Prediction& prediction) {
  if (prediction.device) return prediction.device;
  return prediction.reserved;
}

FitVerdict fits(const std::optional<PredictedBytes>& need, uint64_t usable_bytes) {
  if (!need) return FitVerdict::kUnknown;
  if (need->high <= usable_bytes) return FitVerdict::kFits;
  return need->low > usable_bytes ? FitVerdict::kDoesNotFit : FitVerdict::kMayFit;
}

std::vector<BoardFit> fit_on_boards(const Prediction& prediction,
                                    std::span<const BoardFacts> boards) {
  const auto need = bytes_that_must_fit(prediction);
  std::vector<BoardFit> out;
  for (const BoardFacts& board : boards) out.push_back({board, fits(need, board.usable_bytes)});
  return out;
}

}  // namespace gpumemprof
