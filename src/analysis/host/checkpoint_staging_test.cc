#include "analysis/host/host_findings.h"

#include <gtest/gtest.h>

namespace gpumemprof {
namespace {

TEST(CheckpointStaging, KnowsTheStepsOfSavingAndNoneOfLoading) {
  EXPECT_TRUE(is_saving("/v/torch/serialization.py", "_save"));
  EXPECT_FALSE(is_saving("/v/torch/serialization.py", "load"));
  EXPECT_TRUE(is_saving("/v/torch/distributed/checkpoint/staging.py", "stage"));
  EXPECT_TRUE(is_saving("/v/torch/distributed/_state_dict_utils.py", "_create_cpu_state_dict"));
  EXPECT_FALSE(is_saving("/v/torch/distributed/_state_dict_utils.py", "_broadcast_state_dict"));
  EXPECT_FALSE(is_saving("/v/torch/distributed/checkpoint/state_dict_loader.py", "load"));
  EXPECT_FALSE(is_saving("train.py", "save"));
  EXPECT_FALSE(is_saving("train.py", ""));
}

}  // namespace
}  // namespace gpumemprof
