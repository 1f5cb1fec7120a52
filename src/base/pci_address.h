// Where a device sits on the PCI bus, as one number: the name that every driver has for it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace gpumemprof {

/// Domain (16 bits), bus (8), device (5), function (3).
using PciAddress = uint32_t;

/// Of "0000:3b:00.0" or, as NVML writes it, "00000000:3B:00.0". Nothing for any other text, and for
/// a domain of more than 16 bits.
std::optional<PciAddress> parse_pci_address(std::string_view text);

}  // namespace gpumemprof
