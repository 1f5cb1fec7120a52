#include "base/pci_address.h"

#include <gtest/gtest.h>

namespace gpumemprof {
namespace {

TEST(PciAddress, IsTheSameHoweverADriverWritesIt) {
  EXPECT_EQ(parse_pci_address("0000:3b:00.0"), 0x3b00u);
  EXPECT_EQ(parse_pci_address("00000000:3B:00.0"), 0x3b00u);
  EXPECT_EQ(parse_pci_address("0001:00:1f.7"), 0x100ffu);
}

TEST(PciAddress, OfAnythingElseIsNone) {
  for (const char* text : {"", ":", "0000:3b:00", "0000:3b:00.", "0000:3b:00.8", "0000:3b:20.0",
                           "10000:3b:00.0", "0000:3bx:00.0", "0000:3b:00.0 ", "-1:3b:00.0"})
    EXPECT_FALSE(parse_pci_address(text)) << text;
}

}  // namespace
}  // namespace gpumemprof
