// An error as one line of text.
#pragma once

#include <errno.h>

#include <string>

#include "base/error.h"

namespace gpumemprof {

/// The message, with " (at byte N)" where it concerns a place in a file. Not made printable.
inline std::string text_of(const Error& error) {
  if (!error.offset) return error.message;
  return error.message + " (at byte " + std::to_string(*error.offset) + ')';
}

/// Of an `errno` of what was to be read: kNotFound where another path or user would help.
inline ErrorCode unreadable_code(int error) {
  for (const int one : {ENOENT, ENOTDIR, EACCES, EPERM, ELOOP, ENAMETOOLONG})
    if (error == one) return ErrorCode::kNotFound;
  return ErrorCode::kSystem;
}

}  // namespace gpumemprof
