// What to change, with the bytes that it is about and where these come from.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gpumemprof {

/// What `Advice::bytes` are.
enum class SavingBasis : uint8_t {
  kAtStake,    ///< held at the peak by what the advice is about: at most that can go
  kSimulated,  ///< the peak less that of the same trace with the change applied to it
  kMeasured,   ///< the peak less that of another run of the program, with the change made
  kTime,       ///< there are none: the change saves time
};
/// "at stake", "simulated", "measured", "time".
const char* saving_basis_name(SavingBasis basis);

/// One recommendation.
struct Advice {
  /// "tf_function", "mixed_precision", "tf_data", "allocator"; of PyTorch's as in practices.h.
  std::string kind;
  std::string title, fix;
  uint64_t bytes = 0;
  std::vector<std::pair<std::string, uint64_t>> evidence;  ///< bytes, counts and times, by name
  SavingBasis basis = SavingBasis::kAtStake;
  uint32_t stack = 0;               ///< StackTable id of the line that matters; 0: none
  uint16_t device = 0;              ///< index in Tables::devices
  uint64_t peak_bytes = 0;          ///< of that device; 0: not told
  std::string peak_of = {};  ///< "process 7, cpu", where it is not the peak that the analysis tells
  uint64_t changed_peak_bytes = 0;  ///< of the run with the change; 0: not measured
  /// Median time of a step before and with the change, where both were measured.
  std::optional<uint64_t> step_ns, changed_step_ns;
  std::string not_measured;  ///< why another run did not tell, where one was asked for
  std::string cost = {};     ///< what it costs beside the work of changing it; empty: nothing known
  /// The allocator refused a request, and with the change it is served: `bytes` are its.
  bool makes_fit = false;
  bool is_of_reserved = false;  ///< the peak is one of what the allocator reserved
  std::string modules = {};  ///< that it is about: "encoder.layers.*"; empty: it is about none

  /// It has a price, and its bytes are an upper bound: less sure to be worth it than what is wasted.
  bool is_choice() const { return basis == SavingBasis::kAtStake && !cost.empty(); }
};

struct AdviceReport {
  bool applies = false;            ///< false: the recording has no allocation of the framework's
  std::string not_looked_because;  ///< nobody looked for advice; empty: somebody did
  std::string failure;  ///< how the program ended that was run for this; empty: well, or none
  std::vector<Advice> advice;                                ///< as order_advice()
  std::vector<std::pair<std::string, std::string>> unknown;  ///< kind -> why
};

}  // namespace gpumemprof
