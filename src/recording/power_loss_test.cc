// A loss of power while a recording is sealed: of what was changed since the last sync, any part
// may be on the disk and any part not, in any order. What the probe wrote long ago is taken to be
// there.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "base/file.h"
#include "format/format.h"
#include "recording/fake_probe.h"
#include "recording/file_sealer.h"
#include "recording/open.h"
#include "recording/seal.h"
#include "recording/test_reading.h"

namespace gpumemprof {
namespace {

using for_tests::FakeProbe;
using for_tests::read_all;
using for_tests::TempFolder;

/// Passes changes on and remembers, page by page, what was there before them, until the next sync.
/// After `changes` of them every further one fails, as the machine is off.
class PowerLossFile final : public File {
 public:
  PowerLossFile(std::unique_ptr<File> file, int changes) : file_(std::move(file)), left_(changes) {}
  const std::string& path() const override { return file_->path(); }
  Result<uint64_t> size() override { return file_->size(); }
  Result<size_t> read_at(uint64_t offset, void* data, size_t size) override {
    return file_->read_at(offset, data, size);
  }
  Status write_at(uint64_t offset, const void* data, size_t size) override {
    if (!remember(offset, size)) return off();
    return file_->write_at(offset, data, size);
  }
  uint64_t next_data(uint64_t offset, uint64_t size) override {
    return file_->next_data(offset, size);
  }
  Result<uint64_t> punch(uint64_t offset, uint64_t length) override {
    if (!remember(offset, length)) return off();
    return file_->punch(offset, length);
  }
  Result<uint64_t> add_at(uint64_t offset, uint64_t amount) override {
    if (!remember(offset, 8)) return off();
    return file_->add_at(offset, amount);
  }
  Status sync() override {
    if (left_ <= 0) return off();
    before_.clear();
    return {};
  }
  bool lock(bool exclusive) override { return file_->lock(exclusive); }
  void unlock() override { file_->unlock(); }
  bool is_off() const { return left_ <= 0; }

  /// What a later start of the machine finds: each page as before or as after every change since
  /// the last sync.
  void lose_power(uint32_t seed) {
    std::mt19937 random(seed);
    for (auto it = before_.rbegin(); it != before_.rend(); ++it) {
      if (random() % 2) (void)file_->write_at(it->offset, it->bytes.data(), it->bytes.size());
    }
  }

 private:
  struct Page {
    uint64_t offset;
    std::string bytes;
  };
  static std::unexpected<Error> off() { return fail(ErrorCode::kSystem, "no power"); }
  bool remember(uint64_t offset, uint64_t size) {
    if (--left_ <= 0) return false;
    for (uint64_t at = offset / format::kPage * format::kPage; at < offset + size;
         at += format::kPage) {
      Page page{at, std::string(format::kPage, 0)};
      if (auto got = file_->read_at(at, page.bytes.data(), page.bytes.size()); got && *got > 0) {
        page.bytes.resize(*got);
      }
      before_.push_back(std::move(page));
    }
    return true;
  }

  std::unique_ptr<File> file_;
  int left_;
  std::vector<Page> before_;
};

void allocate(FakeProbe* probe, uint64_t count) {
  probe->write_as_dead_process();
  auto& thread = probe->start_thread(11, "main");
  uint32_t stack = probe->define_stack(&thread, {"main", "step"}, 3);
  for (uint64_t i = 0; i < count; ++i) {
    probe->alloc(&thread, 1000 + i * 100, 0x1000 + i * 64, 100 + i, stack);
  }
}

TEST(PowerLoss, AtAnyPointOfSealingNoEventIsLostOrDoubled) {
  FakeProbe probe;
  allocate(&probe, 900);
  const std::string original = probe.bytes();
  TempFolder folder;
  const std::string path = folder.file("a.gmp");
  for_tests::write_file(path, original);
  const auto expected = read_all({path});
  ASSERT_EQ(expected.events.size(), 900u);
  int losses = 0;
  for (int n = 1; n < 200; ++n) {
    for_tests::write_file(path, original);
    PowerLossFile file(std::move(*open_file(path, FileMode::kReadWrite)), n);
    {
      auto sealer = FileSealer::open(&file, {.checkpoint_bytes = 4000, .gather_bytes = 0});
      ASSERT_TRUE(sealer);
      (void)(*sealer)->advance(1000 + 45'000, true);
      (void)(*sealer)->finish();
    }
    if (!file.is_off()) break;
    file.lose_power(static_cast<uint32_t>(n));
    ++losses;
    ASSERT_EQ(read_all({path}).events, expected.events) << "power lost at change " << n;
    ASSERT_TRUE(FolderSealer(folder.path(), {}).finish());
    ASSERT_EQ(read_all({path}).events, expected.events) << "sealed again after change " << n;
  }
  EXPECT_GT(losses, 20);
}

}  // namespace
}  // namespace gpumemprof
