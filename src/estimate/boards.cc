#include "estimate/boards.h"

#include <cmath>

namespace gpumemprof {
namespace {

constexpr uint64_t kGigabyte = 1'000'000'000;

uint64_t gib(double amount) { return static_cast<uint64_t>(std::floor(amount * (1 << 30))); }

// Every figure of usable memory is what PyTorch printed as the total capacity of such a board in a
// public report; of several the lowest was taken. They differ by some MiB between drivers.
const std::vector<BoardFacts>& table() {
  static const std::vector<BoardFacts> boards = {
      {"NVIDIA T4 16GB", 16 * kGigabyte, gib(14.75),
       "PyTorch's message in hpcaitech/Open-Sora issue 697"},
      {"NVIDIA GeForce RTX 4090 24GB", 24 * kGigabyte, gib(23.61),
       "PyTorch's messages in pinokiofactory/flux-webui issue 11 and ali-vilab/VGen issue 104"},
      {"NVIDIA GeForce RTX 5090 32GB", 32 * kGigabyte, gib(31.37),
       "PyTorch's message in Wan-Video/Wan2.1 issue 465"},
      {"NVIDIA V100 32GB", 32 * kGigabyte, gib(31.74),
       "PyTorch's message in liucongg/ChatGLM-Finetuning issue 73"},
      {"NVIDIA A100 40GB", 40 * kGigabyte, 40536ull << 20,
       "the capacity of the boards that GPUMemNet's tables were measured on"},
      {"NVIDIA L40S 48GB", 48 * kGigabyte, gib(44.42),
       "PyTorch's message in stepfun-ai/Step-Video-T2V issue 8 (ECC is on)"},
      {"NVIDIA H100 80GB", 80 * kGigabyte, gib(79.11),
       "PyTorch's message in vllm-project/vllm issue 27508"},
      {"NVIDIA A100 80GB", 80 * kGigabyte, gib(79.25),
       "PyTorch's message in HiDream-ai/VAREdit issue 6"},
      {"NVIDIA H100 NVL 94GB", 94 * kGigabyte, gib(93.00),
       "PyTorch's message in ali-vilab/VACE issue 56"},
      {"NVIDIA B200 180GB", 180 * kGigabyte, gib(178.35),
       "the driver's figure in pytorch/ao pull request 4002"},
  };
  return boards;
}

}  // namespace

std::span<const BoardFacts> known_boards() { return table(); }

const char* verdict_name(FitVerdict verdict) {
  switch (verdict) {
    case FitVerdict::kFits:
      return "fits";
    case FitVerdict::kMayFit:
      return "may fit";
    case FitVerdict::kDoesNotFit:
      return "does not fit";
    case FitVerdict::kUnknown:
      break;
  }
  return "unknown";
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
