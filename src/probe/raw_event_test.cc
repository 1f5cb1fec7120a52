#include <gtest/gtest.h>

#include <cstring>

#include "format/format.h"

namespace gpumemprof::format {
namespace {

TEST(RawEvent, FieldsComeBackAtTheirLimits) {
  const uint64_t time = (uint64_t{1} << 56) - 1, address = kAddressMask, size = kSizeMask;
  RawEvent e = pack(time, address, 127, size, kRawWide, kMaxStackId, 0x5a);
  EXPECT_EQ(time_of(e), time);
  EXPECT_EQ(address_of(e), address);
  EXPECT_EQ(device_class_of(e), 127u);
  EXPECT_EQ(size_of(e), size);
  EXPECT_EQ(action_of(e), kRawWide);
  EXPECT_EQ(stack_of(e), kMaxStackId);
  EXPECT_TRUE(is_intact(e, 0x5a));
}

TEST(RawEvent, AStepComesBackWithAllItsBits) {
  for (int64_t step : {int64_t{0}, int64_t{1}, int64_t{-1}, INT64_MAX, INT64_MIN + 1,
                       static_cast<int64_t>(0x9e3779b97f4a7c15)}) {
    RawEvent e = pack_step(77, true, step, 0x5a);
    EXPECT_TRUE(is_step(e) && has_step(e) && is_intact(e, 0x5a));
    EXPECT_EQ(step_of(e), step);
    EXPECT_EQ(size_of(e), 0u) << "a reader without steps adds nothing to the next size";
  }
  RawEvent none = pack_step(77, false, 5, 0x5a);
  EXPECT_TRUE(is_step(none) && !has_step(none));
  EXPECT_FALSE(is_step(pack(77, 5, 0, 0, kRawWide, 0, 0x5a)));
  EXPECT_FALSE(is_step(pack(77, 5, 0, 0, kRawAlloc, 9, 0x5a)));
}

TEST(RawEvent, EveryFlippedByteIsSeen) {
  RawEvent e = pack(123456789, 0x7f1234567890, 3, 4096, kRawAlloc, 17, salt(5, 9));
  for (size_t i = 0; i < sizeof(e); ++i) {
    for (int flip = 1; flip < 256; ++flip) {
      RawEvent damaged = e;
      reinterpret_cast<uint8_t*>(&damaged)[i] ^= static_cast<uint8_t>(flip);
      EXPECT_FALSE(is_intact(damaged, salt(5, 9)));
    }
  }
}

TEST(RawEvent, ARecordOfTheTurnBeforeIsNotIntact) {
  int different = 0;
  for (uint32_t sequence = 0; sequence < 1000; ++sequence) {
    different += salt(7, sequence) != salt(7, sequence + 1);
  }
  EXPECT_EQ(different, 1000);
}

}  // namespace
}  // namespace gpumemprof::format
