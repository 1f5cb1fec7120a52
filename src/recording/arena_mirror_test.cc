#include "recording/arena_mirror.h"

#include <errno.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "recording/arena_for_tests.h"
#include "recording/seal.h"

namespace gpumemprof {
namespace {

using namespace format;
using for_tests::EverythingRead;
using for_tests::FakeProbe;
using for_tests::ProcessInArena;
using for_tests::read_all;
using for_tests::TempFolder;

constexpr size_t kHalf = 61;  // FakeProbe writes a half out when it has that many

/// A process that does nothing until it is killed.
class Sleeper {
 public:
  Sleeper() {
    pid_ = fork();
    if (pid_ == 0) {
      for (;;) pause();
    }
  }
  ~Sleeper() { end(); }
  uint32_t pid() const { return static_cast<uint32_t>(pid_); }
  void end() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 private:
  pid_t pid_;
};

class ArenaFile : public ::testing::Test {
 protected:
  ArenaFile() : arena_(*Arena::make()), thread_(&probe_.start_thread(1, "main")) {
    probe_.write_as_dead_process();
    stack_ = probe_.define_stack(thread_, {"main"});
    process_ = std::make_unique<ProcessInArena>(arena_, folder_.path(), &probe_, program_.pid());
    process_->take_stage(*thread_);
  }

  void alloc(int times) {
    for (int i = 0; i < times; ++i) {
      ++allocs_;
      probe_.alloc(thread_, 1000 + allocs_, 0x1000 * allocs_, 100, stack_);
    }
    process_->keep();
  }

  /// What somebody reads who has the file alone.
  EverythingRead read_copy() {
    std::filesystem::copy_file(process_->path(), copies_.file("copy.gmp"),
                               std::filesystem::copy_options::overwrite_existing);
    return read_all({copies_.file("copy.gmp")});
  }

  Sleeper program_;  // first: a fork with nothing open
  TempFolder folder_, copies_;
  std::shared_ptr<Arena> arena_;
  FakeProbe probe_;
  FakeProbe::Thread* thread_;
  std::unique_ptr<ProcessInArena> process_;
  uint32_t stack_ = 0;
  uint64_t allocs_ = 0;
};

TEST_F(ArenaFile, IsReadWithWhatIsInTheArenaAlone) {
  alloc(50);
  EXPECT_EQ(read_all({process_->path()}).events.size(), 50u);
  EXPECT_EQ(read_copy().events.size(), 0u);
  alloc(50);  // a half was written out
  EXPECT_EQ(read_all({process_->path()}).events.size(), 100u);
  EXPECT_EQ(read_copy().events.size(), kHalf);
}

TEST_F(ArenaFile, ACopySaysThatItsEndMayBeMissing) {
  alloc(3);
  EXPECT_TRUE(read_all({process_->path()}).loss.reasons.empty());
  const Loss copy = read_copy().loss;
  ASSERT_EQ(copy.reasons.size(), 1u);
  EXPECT_NE(copy.reasons[0].reason.find("the last events may be missing"), std::string::npos);
}

TEST_F(ArenaFile, HasEverythingAfterARound) {
  ArenaMirror mirror(arena_, folder_.path());
  for (int events : {50, 10, 30, 200, 1}) {
    alloc(events);
    mirror.round();
    EXPECT_EQ(read_copy().events.size(), allocs_);
  }
  EXPECT_EQ(mirror.alive(), 1u);
}

TEST_F(ArenaFile, IsWholeOnceItsProcessIsGone) {
  alloc(50);
  ArenaMirror mirror(arena_, folder_.path());
  program_.end();
  mirror.round();
  EXPECT_EQ(mirror.alive() + mirror.waiting(), 0u);
  const EverythingRead copy = read_copy();
  EXPECT_EQ(copy.events.size(), 50u);
  EXPECT_TRUE(copy.loss.reasons.empty());
  EXPECT_TRUE(arena_->is_final(process_->place()));
  EXPECT_EQ(arena_->header()->processes[0], 0u);
}

TEST_F(ArenaFile, ThatSomebodyCutIsMadeWhole) {
  alloc(50);
  ArenaMirror mirror(arena_, folder_.path());
  mirror.round();
  std::filesystem::resize_file(process_->path(), 0);
  mirror.round();
  EXPECT_EQ(read_copy().events.size(), 50u);
}

/// Of the half and of the turn after it; the chunk between is in the file, as the program writes
/// it.
TEST_F(ArenaFile, NeverCountsARecordThatItLacksWhereverTheMirrorDies) {
  alloc(40);
  ArenaMirror(arena_, folder_.path()).round();
  alloc(30);  // 61 of 70 are a chunk now, the half has turned
  const std::string before = for_tests::read_file(process_->path());
  for (int writes = 0;; ++writes) {
    for_tests::write_file(process_->path(), before);  // the same inode
    int left = writes;
    ArenaMirror dying(arena_, folder_.path(),
                      [&](int fd, uint64_t offset, const void* data, size_t size) {
                        if (left < 0) return EIO;
                        if (--left >= 0) return ArenaMirror::write_at(fd, offset, data, size);
                        // A kill ends a write between two pages.
                        if (size > kPage) ArenaMirror::write_at(fd, offset, data, kPage);
                        return EIO;
                      });
    dying.round();
    const EverythingRead copy = read_copy();
    EXPECT_GE(copy.events.size(), kHalf) << writes;
    EXPECT_EQ(copy.loss.events, 0u) << writes;
    for (size_t i = 0; i < copy.events.size(); ++i) {
      EXPECT_EQ(copy.events[i].address, 0x1000 * (i + 1)) << writes;
    }
    if (left > 0) break;  // it did not die
  }
  EXPECT_EQ(read_copy().events.size(), 70u);
}

TEST_F(ArenaFile, CountsAsLostWhatADiskThatStaysFullRefuses) {
  alloc(50);
  bool is_full = true;
  ArenaMirror mirror(arena_, folder_.path(),
                     [&](int fd, uint64_t offset, const void* data, size_t size) {
                       if (is_full && offset != 0) return ENOSPC;
                       return ArenaMirror::write_at(fd, offset, data, size);
                     });
  program_.end();
  mirror.round();
  EXPECT_EQ(mirror.waiting(), 1u);
  EXPECT_EQ(read_all({process_->path()}).events.size(), 50u);  // nothing is given up yet
  mirror.round(true);
  EXPECT_EQ(mirror.waiting(), 0u);
  EXPECT_TRUE(mirror.given_up().empty());
  const EverythingRead copy = read_copy();
  EXPECT_EQ(copy.events.size(), 0u);
  EXPECT_EQ(copy.loss.events, 50u);
}

TEST_F(ArenaFile, CountsAsLostOnlyWhatItDoesNotHaveFromEarlierRounds) {
  alloc(30);
  bool is_full = false;
  ArenaMirror mirror(arena_, folder_.path(),
                     [&](int fd, uint64_t offset, const void* data, size_t size) {
                       if (is_full && offset != 0) return ENOSPC;
                       return ArenaMirror::write_at(fd, offset, data, size);
                     });
  mirror.round();
  alloc(20);
  is_full = true;
  program_.end();
  mirror.round(true);
  const EverythingRead copy = read_copy();
  EXPECT_EQ(copy.events.size(), 30u);
  EXPECT_EQ(copy.loss.events, 20u);
}

TEST_F(ArenaFile, IsWrittenWhenTheDiskHasRoomAgain) {
  alloc(50);
  bool is_full = true;
  ArenaMirror mirror(arena_, folder_.path(),
                     [&](int fd, uint64_t offset, const void* data, size_t size) {
                       return is_full ? ENOSPC : ArenaMirror::write_at(fd, offset, data, size);
                     });
  program_.end();
  mirror.round();
  is_full = false;
  mirror.round();
  EXPECT_EQ(mirror.waiting(), 0u);
  EXPECT_EQ(read_copy().events.size(), 50u);
  EXPECT_EQ(read_copy().loss.events, 0u);
}

TEST_F(ArenaFile, SaysWhatItGaveUpWhereEvenTheCountCannotBeWritten) {
  probe_.state().lost[kLostNoSpace] = 3;
  alloc(50);
  ArenaMirror mirror(arena_, folder_.path(),
                     [](int, uint64_t, const void*, size_t) { return ENOSPC; });
  program_.end();
  mirror.round(true);
  ASSERT_EQ(mirror.given_up().size(), 1u);
  EXPECT_EQ(mirror.given_up()[0].reason,
            "its last events could not be written: No space left on device");
  EXPECT_EQ(mirror.given_up()[0].lost_events, 53u);
  EXPECT_EQ(read_copy().loss.reasons.size(), 1u);  // that its end may be missing
}

TEST_F(ArenaFile, IsSealedWhileItsProcessLivesAndFinishedOnlyAfterTheMirror) {
  alloc(200);
  FolderSealer sealer(folder_.path(), {});
  ASSERT_TRUE(sealer.finish());
  program_.end();
  ASSERT_TRUE(sealer.finish());
  EXPECT_EQ(sealer.totals().files, 0u);  // its last half is in the arena alone
  ArenaMirror mirror(arena_, folder_.path());
  mirror.round();
  ASSERT_TRUE(sealer.finish());
  EXPECT_EQ(sealer.totals().files, 1u);
  const EverythingRead all = read_all({process_->path()});
  EXPECT_EQ(all.events.size(), 200u);
  EXPECT_TRUE(all.loss.reasons.empty());
}

/// A sealer claims a place between the mirror's copy of the page and the end of the arena's word.
TEST_F(ArenaFile, IsNeverSealedWhileItsPageIsTakenOver) {
  alloc(50);
  int pages = 0, sealers = 0;
  ArenaMirror mirror(arena_, folder_.path(), [&](int fd, uint64_t at, const void* data, size_t n) {
    pages += at == 0;
    sealers += (*open_file(process_->path(), FileMode::kReadWrite))->lock(true);
    return ArenaMirror::write_at(fd, at, data, n);
  });
  program_.end();
  auto sealer = open_file(process_->path(), FileMode::kReadWrite);
  ASSERT_TRUE(sealer && (*sealer)->lock(true));
  for (bool give_up : {false, true}) {
    mirror.round(give_up);
    EXPECT_EQ(mirror.waiting(), 1u);
    EXPECT_EQ(mirror.being_sealed(), 1u);
    EXPECT_EQ(pages, 0);
  }
  (*sealer)->unlock();
  mirror.round();
  EXPECT_EQ(mirror.waiting(), 0u);
  EXPECT_EQ(pages, 1);
  EXPECT_EQ(sealers, 0);
  EXPECT_TRUE((*sealer)->lock(true));
  EXPECT_EQ(read_copy().events.size(), 50u);
}

TEST_F(ArenaFile, MaySomebodySealWhileADiskIsFull) {
  alloc(50);
  ArenaMirror mirror(arena_, folder_.path(),
                     [](int, uint64_t, const void*, size_t) { return ENOSPC; });
  program_.end();
  mirror.round();
  EXPECT_EQ(mirror.waiting(), 1u);
  EXPECT_TRUE((*open_file(process_->path(), FileMode::kReadWrite))->lock(true));
}

TEST_F(ArenaFile, BelongsToAKeeperAsLongAsAProcessListsItself) {
  ArenaMirror mirror(arena_, folder_.path());
  auto free_entries = [&] { return std::ranges::count(arena_->header()->processes, 0u); };
  EXPECT_FALSE(mirror.leave());  // it had not looked yet, and the process lives
  EXPECT_EQ(free_entries(), int{kArenaProcesses} - 1);
  alloc(50);
  program_.end();
  EXPECT_TRUE(mirror.leave());
  EXPECT_EQ(read_copy().events.size(), 50u);
  EXPECT_EQ(free_entries(), 0);
}

TEST_F(ArenaFile, IsLeftAloneWhereAnotherHasItsName) {
  alloc(50);
  std::filesystem::rename(process_->path(), folder_.file("moved.gmp"));
  for_tests::write_file(process_->path(), "something else");
  ArenaMirror mirror(arena_, folder_.path());
  program_.end();
  mirror.round();
  EXPECT_EQ(for_tests::read_file(process_->path()), "something else");
}

TEST_F(ArenaFile, BelievesNothingOfADamagedArena) {
  alloc(50);
  const uint64_t link = process_->place() + offsetof(ArenaPlace, first_stage);
  auto put = [&](uint64_t at, uint64_t value) {
    ASSERT_EQ(pwrite(arena_->fd(), &value, 8, static_cast<off_t>(at)), 8);
  };
  uint64_t stage = 0;
  ASSERT_TRUE(arena_->read_at(link, &stage, sizeof(stage)));
  put(stage + offsetof(ArenaPlace, next_stage), stage);  // a ring
  EXPECT_EQ(arena_->stages_of(*arena_->process_at(process_->place())).size(), 4096u);
  for (uint64_t wrong :
       {uint64_t{1}, uint64_t{4096}, uint64_t{8}, ~uint64_t{0}, uint64_t{1} << 60}) {
    put(link, wrong);
    EXPECT_TRUE(arena_->stages_of(*arena_->process_at(process_->place())).empty()) << wrong;
    EXPECT_FALSE(arena_->process_at(wrong)) << wrong;
  }
  for (const char* name : {"../a.gmp", "/etc/passwd", "", ".hidden"}) {
    char file[256] = {};
    memcpy(file, name, strlen(name));
    ASSERT_EQ(pwrite(arena_->fd(), file, sizeof(file),
                     static_cast<off_t>(process_->place() + offsetof(ArenaPlace, file))),
              static_cast<ssize_t>(sizeof(file)));
    EXPECT_FALSE(arena_->process_at(process_->place())) << name;
  }
}

}  // namespace
}  // namespace gpumemprof
