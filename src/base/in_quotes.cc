#include "base/in_quotes.h"

namespace gpumemprof {

std::string in_quotes(std::string_view text, size_t most_bytes) {
  const bool is_cut = text.size() > most_bytes;
  if (is_cut) {
    size_t end = most_bytes;
    // Bytes 10xxxxxx go on with a character of UTF-8.
    while (end != 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
    text = text.substr(0, end);
  }
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    out += byte < 0x20 || byte == 0x7f ? '?' : c;
  }
  out += is_cut ? "…\"" : "\"";
  return out;
}

}  // namespace gpumemprof
