#include "base/crc32c.h"

#include <gtest/gtest.h>

#include <string>

namespace gpumemprof {
namespace {

// RFC 3720 appendix B.4.
TEST(Crc32c, MatchesTheValuesOfTheIscsiStandard) {
  std::string zeros(32, '\0'), ones(32, '\xff'), up(32, 0), down(32, 0);
  for (int i = 0; i < 32; ++i) up[i] = static_cast<char>(i), down[i] = static_cast<char>(31 - i);
  EXPECT_EQ(crc32c(0, zeros.data(), 32), 0x8a9136aau);
  EXPECT_EQ(crc32c(0, ones.data(), 32), 0x62a8ab43u);
  EXPECT_EQ(crc32c(0, up.data(), 32), 0x46dd794eu);
  EXPECT_EQ(crc32c(0, down.data(), 32), 0x113fdb5cu);
  EXPECT_EQ(crc32c(0, "123456789", 9), 0xe3069283u);
}

TEST(Crc32c, ContinuesWhereItStopped) {
  std::string text = "the quick brown fox jumps over the lazy dog";
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    uint32_t crc = crc32c(0, text.data(), cut);
    EXPECT_EQ(crc32c(crc, text.data() + cut, text.size() - cut),
              crc32c(0, text.data(), text.size()));
  }
}

/// A bit at a time, from the polynomial alone.
uint32_t by_definition(const std::string& text) {
  uint32_t crc = ~uint32_t{0};
  for (unsigned char byte : text) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
  }
  return ~crc;
}

TEST(Crc32c, IsTheDefinitionsAtEveryLengthAroundWhatIsDoneAtOnce) {
  std::string text;
  for (uint32_t i = 0; i < 10000; ++i) text += static_cast<char>(i * 2654435761u >> 24);
  for (size_t middle : {1024, 2048, 3072, 6144, 9216}) {
    for (size_t size = middle - 9; size <= middle + 9; ++size) {
      ASSERT_EQ(crc32c(0, text.data(), size), by_definition(text.substr(0, size))) << size;
      ASSERT_EQ(crc32c(0, text.data() + 3, size), by_definition(text.substr(3, size))) << size;
    }
  }
}

}  // namespace
}  // namespace gpumemprof
