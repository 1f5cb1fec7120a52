// An error as one line of text.
#pragma once

#include <string>

#include "base/error.h"

namespace gpumemprof {

/// The message, with " (at byte N)" where it concerns a place in a file. Not made printable.
inline std::string text_of(const Error& error) {
  if (!error.offset) return error.message;
  return error.message + " (at byte " + std::to_string(*error.offset) + ')';
}

}  // namespace gpumemprof
