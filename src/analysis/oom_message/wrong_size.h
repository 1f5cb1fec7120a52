// Requests that no machine serves, and refusals by a host: the same for every framework.
#pragma once

#include <string>

#include "readers/oom_message.h"

namespace gpumemprof {

/// No host or device that programs ordinarily run on has as much: a product of sizes, or a
/// broadcast.
bool is_wrong_size(const PrintedSize& requested);
bool is_wrong_size(const OomMessage& message);

/// Who refused, where the allocator or the wording tells it.
enum class RefusedBy : uint8_t { kUnknown, kHost, kProbablyHost };
RefusedBy refused_by(const OomMessage& message);

/// One sentence; is_wrong_size() is true.
std::string wrong_size_summary(const OomMessage& message);
/// What to do about it.
std::string wrong_size_advice(const OomMessage& message);

inline constexpr char kHostSaysNoNumbers[] =
    "The message does not say how much is used, or which limit there is.";
inline constexpr char kHostRefused[] =
    "The host refused memory: it has too little, or a limit (ulimit -v) was reached.";
inline constexpr char kProbablyHostRefused[] =
    "Probably the host refused memory: it has too little, or a limit (ulimit -v) was reached.";

}  // namespace gpumemprof
