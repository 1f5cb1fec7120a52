#include "analysis/categories/category_sums.h"

#include <gtest/gtest.h>

#include "trace/label_frames.h"

namespace gpumemprof {
namespace {

TEST(CategorySums, BuffersOfTorchDistributedAreNotOfTheBatch) {
  Tables tables;
  const auto in = [&](uint32_t caller, std::string_view file, std::string_view function) {
    const Frame frame{tables.strings.intern(file), tables.strings.intern(function),
                      file.starts_with('<') ? 0u : 3u};
    return tables.stacks.push(caller, tables.stacks.intern_frame(frame));
  };
  const uint32_t own = in(in(0, "/me/a.py", "main"), kModuleFile, "head");
  const uint32_t gather = in(own, "/v/torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py", "all_gather");
  const uint32_t wrapped = in(gather, "/me/model.py", "forward");  // the wrapper calls the module
  const auto is_of = [&](uint32_t stack, Category category) {
    return is_of_batch({.stack = stack, .category = category, .bytes = 1, .count = 1}, tables);
  };
  EXPECT_TRUE(is_of(own, Category::kTemporary));
  EXPECT_FALSE(is_of(gather, Category::kTemporary));
  EXPECT_TRUE(is_of(wrapped, Category::kActivation));
  EXPECT_FALSE(is_of(own, Category::kParameter));
}

}  // namespace
}  // namespace gpumemprof
