#include "analysis/host/host_findings.h"

#include <gtest/gtest.h>

namespace gpumemprof {
namespace {

TEST(CheckpointStaging, KnowsTheStepsOfSavingAndNoneOfLoading) {
  EXPECT_TRUE(is_saving("/v/torch/serialization.py:1310 _save"));
  EXPECT_FALSE(is_saving("/v/torch/serialization.py:1500 load"));
  EXPECT_TRUE(is_saving("/v/torch/distributed/checkpoint/staging.py:7 stage"));
  EXPECT_TRUE(is_saving("/v/torch/distributed/_state_dict_utils.py:392 _create_cpu_state_dict"));
  EXPECT_FALSE(is_saving("/v/torch/distributed/_state_dict_utils.py:640 _broadcast_state_dict"));
  EXPECT_FALSE(is_saving("/v/torch/distributed/checkpoint/state_dict_loader.py:7 load"));
  EXPECT_FALSE(is_saving("train.py"));
  EXPECT_FALSE(is_saving("train.py:7"));
}

}  // namespace
}  // namespace gpumemprof
