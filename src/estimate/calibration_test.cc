#include "estimate/calibration.h"

#include <gtest/gtest.h>

namespace gpumemprof {
namespace {

std::string with(const std::string& more) {
  return R"({"schema":"gpumemprof.calibration/1","device":"NVIDIA X","driver":"580.1","torch":"2.13.0",)"
         R"("cuda":"13.0","basis":"process","context_bytes":500,"cublas_bytes":70,"cudnn_bytes":8)" +
         more + "}";
}

TEST(Calibration, IsReadAndNamed) {
  const auto read = parse_calibration(with(",\"product_workspace_bytes\":9,\"later\":[1]"));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->device_constant_bytes(), 578u);
  EXPECT_EQ(read->product_workspace_bytes, 9u);
  EXPECT_EQ(read->multiprocessors, 0u) << "files of before do not say";
  const std::string with_count = with(",\"product_workspace_bytes\":9,\"multiprocessors\":132");
  EXPECT_EQ(parse_calibration(with_count)->multiprocessors, 132u);
  EXPECT_EQ(calibration_source(*read),
            "measured by calibrate on NVIDIA X, PyTorch 2.13.0, CUDA 13.0");
}

TEST(Calibration, WhatIsNoneIsRefused) {
  EXPECT_TRUE(parse_calibration("{").error().offset);
  EXPECT_FALSE(parse_calibration("[]"));
  EXPECT_FALSE(parse_calibration("{\"schema\":7}"));
  EXPECT_EQ(parse_calibration("{\"schema\":\"gpumemprof.calibration/2\"}").error().code,
            ErrorCode::kUnsupported);
  EXPECT_NE(parse_calibration(with("")).error().message.find("product_workspace_bytes"),
            std::string::npos);
  EXPECT_FALSE(parse_calibration(with(",\"product_workspace_bytes\":-1")));
  for (const char* count : {"0", "-1", "1.5", "99999", "\"many\""}) {
    const std::string text = std::string(",\"product_workspace_bytes\":9,\"multiprocessors\":") + count;
    EXPECT_FALSE(parse_calibration(with(text))) << count;
  }
  EXPECT_FALSE(parse_calibration(with(",\"product_workspace_bytes\":1e30")));
  EXPECT_FALSE(parse_calibration(with(",\"product_workspace_bytes\":1e400")));
}

}  // namespace
}  // namespace gpumemprof
