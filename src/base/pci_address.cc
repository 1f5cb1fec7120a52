#include "base/pci_address.h"

#include <charconv>

namespace gpumemprof {

std::optional<PciAddress> parse_pci_address(std::string_view text) {
  struct Part {
    char end;
    uint32_t most, shift;
  };
  constexpr Part kParts[] = {{':', 0xffff, 16}, {':', 0xff, 8}, {'.', 0x1f, 3}, {'\0', 7, 0}};
  PciAddress out = 0;
  for (const Part& part : kParts) {
    const size_t length = part.end == '\0' ? text.size() : text.find(part.end);
    if (length == text.npos || length == 0) return std::nullopt;
    uint32_t value = 0;
    const char* end = text.data() + length;
    if (std::from_chars(text.data(), end, value, 16).ptr != end || value > part.most)
      return std::nullopt;
    out |= value << part.shift;
    text.remove_prefix(part.end == '\0' ? length : length + 1);
  }
  return out;
}

}  // namespace gpumemprof
