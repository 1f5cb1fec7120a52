#include "run/shm_files.h"

#include "devices/fake_root.h"

namespace gpumemprof {
namespace {

class ShmFiles : public FakeRoot {};

Others nobody() { return Others::kNone; }

TEST_F(ShmFiles, OnlyWhatIsNewAndNobodyUsesIsLeft) {
  put("/dev/shm/old", "x");
  const auto before = shm_files(root_);
  ASSERT_EQ(before.size(), 1u);
  put("/dev/shm/torch_41_7_0", std::string(8192, 'a'));
  put("/dev/shm/torch_99_7_0", std::string(4096, 'a'));
  put("/dev/shm/mapped", "a");
  put("/dev/shm/open", "a");
  put("/proc/5/maps", "7f00-7f10 rw-s 00000000 00:18 3   /dev/shm/mapped\n");
  std::filesystem::create_directories(root_ + "/proc/5/fd");
  std::filesystem::create_symlink("/dev/shm/open", root_ + "/proc/5/fd/3");
  const auto left = left_in_shm(before, {41}, nobody, root_);
  ASSERT_EQ(left.size(), 2u);
  EXPECT_EQ(left[0].name, "torch_41_7_0");
  EXPECT_TRUE(left[0].is_own);
  EXPECT_GE(left[0].bytes, 8192u);
  EXPECT_EQ(left[1].name, "torch_99_7_0");
  EXPECT_FALSE(left[1].is_own) << "another program may have made it meanwhile";
}

TEST_F(ShmFiles, AFileThatWasMadeAnewUnderItsOldNameIsNew) {
  put("/dev/shm/a", "x");
  auto before = shm_files(root_);
  before[0].inode += 1;
  EXPECT_EQ(left_in_shm(before, {}, nobody, root_).size(), 1u);
  EXPECT_TRUE(left_in_shm(shm_files(root_), {}, nobody, root_).empty());
}

TEST_F(ShmFiles, WhoOutlivesTheProgramMayRemoveThem) {
  put("/dev/shm/kept", "x");
  put("/dev/shm/removed", "x");
  int asked = 0;
  const auto lives_for_two_looks = [&] {
    if (++asked == 2) std::filesystem::remove(root_ + "/dev/shm/removed");
    return asked <= 2 ? Others::kAtRest : Others::kNone;
  };
  const auto left = left_in_shm({}, {}, lives_for_two_looks, root_);
  ASSERT_EQ(left.size(), 1u);
  EXPECT_EQ(left[0].name, "kept");
  EXPECT_EQ(asked, 3);
}

TEST_F(ShmFiles, WhoIsAtWorkIsWaitedForLongerThanWhoRests) {
  put("/dev/shm/removed", "x");
  int asked = 0;
  const auto starved = [&] {
    if (++asked == 80) std::filesystem::remove(root_ + "/dev/shm/removed");
    return Others::kAtWork;
  };
  EXPECT_TRUE(left_in_shm({}, {}, starved, root_).empty());
  EXPECT_EQ(asked, 80);
  put("/dev/shm/kept", "x");
  asked = 0;
  const auto rests = [&] { return ++asked, Others::kAtRest; };
  EXPECT_EQ(left_in_shm({}, {}, rests, root_).size(), 1u);
  EXPECT_EQ(asked, 50);
}

}  // namespace
}  // namespace gpumemprof
