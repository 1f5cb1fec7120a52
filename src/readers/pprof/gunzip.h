// gzip, as far as one profile needs it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace gpumemprof::pprof {

inline bool is_gzip(std::string_view bytes) { return bytes.starts_with("\x1f\x8b"); }

/// All of a file of one member, checksum and length included. Errors: kBadInput with the byte of
/// `compressed` at which it is damaged, cut short, goes on behind its end, or has yielded more than
/// `most_bytes`.
Result<std::string> gunzip(std::string_view compressed, uint64_t most_bytes);

/// What the beginning of a compressed file yields, at most `most_bytes`; nothing where it is none.
std::string gunzip_beginning(std::string_view compressed, size_t most_bytes);

}  // namespace gpumemprof::pprof
