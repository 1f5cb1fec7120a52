#pragma once

#include <gtest/gtest.h>

#include <atomic>

#include "probe/scopes.h"

namespace gpumemprof::probe {

/// A device of the test's own, with addresses that no other test uses.
class Scopes : public testing::Test {
 protected:
  using Result = gpumemprof_scope_result;

  void SetUp() override {
    static int8_t index = 0;
    ASSERT_TRUE(begin_counting());
    device_ = {50, index++};
  }

  uint64_t begin() { return begin_scope(device_, nullptr); }
  Result end(uint64_t id) {
    Result result;
    EXPECT_EQ(end_scope(id, &result), GPUMEMPROF_SCOPE_OK);
    return result;
  }
  uint64_t make(uint64_t bytes) {
    static std::atomic<uint64_t> next{0x20000000000};
    uint64_t address = next += 64;
    count_alloc(address, bytes, device_);
    return address;
  }
  void drop(uint64_t address) { EXPECT_TRUE(count_free(address, device_)); }

  Device device_;
};

}  // namespace gpumemprof::probe
