// Errors are values. Nothing in the readers throws: a hostile file ends in an Error that names
// what is wrong and at which byte, which the command prints as one line.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <utility>

namespace gpumemprof {

/// What kind of failure it is; the command's exit code follows from it.
enum class ErrorCode : uint8_t {
  kBadInput,     ///< the file is not what it claims to be, or is damaged (exit 2)
  kNotFound,     ///< no such file or folder, or none that we may read (exit 2)
  kUsage,        ///< the request makes no sense (exit 2)
  kSystem,       ///< the system refused: a write, disk, memory (exit 1)
  kUnsupported,  ///< a newer major version, an unknown codec (exit 2)
};

/// An error: a kind, one sentence, and the byte offset where it concerns a place in a file.
struct Error {
  ErrorCode code = ErrorCode::kSystem;
  std::string message;
  std::optional<uint64_t> offset = {};
};

template <class T>
using Result = std::expected<T, Error>;
using Status = std::expected<void, Error>;

inline std::unexpected<Error> fail(ErrorCode code, std::string message) {
  return std::unexpected(Error{code, std::move(message)});
}

inline std::unexpected<Error> fail_at(uint64_t offset, std::string message) {
  return std::unexpected(Error{ErrorCode::kBadInput, std::move(message), offset});
}

}  // namespace gpumemprof
