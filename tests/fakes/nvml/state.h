// What the functions of the fake share, and the codes that NVML answers with.
#pragma once

#include "board.h"

#define FAKE_NVML_EXPORT extern "C" __attribute__((visibility("default")))

namespace fake_nvml {

enum Code {
  kSuccess = 0,
  kUninitialized = 1,
  kInvalidArgument = 2,
  kNotSupported = 3,
  kNotFound = 6,
  kInsufficientSize = 7,
  kVersionMismatch = 25,
  kUnknown = 999,
};

/// Null before nvmlInit_v2 and after nvmlShutdown.
Machine* machine();

/// The board behind a handle; null with `code` where there is none or `what` is refused.
const Board* board_behind(void* handle, const char* what, int* code);

/// What programs of the fake driver have of the board now, beside what its file says.
uint64_t used_here(const Board& board);

}  // namespace fake_nvml
