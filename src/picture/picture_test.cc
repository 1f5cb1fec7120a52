// Pictures of a machine of our own making, and what follows from several of them.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/steady_clock.h"
#include "devices/fake_root.h"
#include "picture/camera.h"
#include "picture/growth.h"
#include "picture/picture_follower.h"
#include "recording/fake_probe.h"
#include "recording/test_reading.h"

namespace gpumemprof {
namespace {

TEST(ProgramName, LeavesOutFoldersAndArguments) {
  EXPECT_EQ(program_name("/usr/bin/python3 -u /srv/me/train.py --token secret"), "train.py");
  EXPECT_EQ(program_name("python -W ignore -X dev train.py"), "train.py");
  EXPECT_EQ(program_name("python3.11 -m torch.distributed.run x.py"),
            "python3.11 -m torch.distributed.run");
  EXPECT_EQ(program_name("python -c password=1"), "python -c");
  EXPECT_EQ(program_name("python"), "python");
  EXPECT_EQ(program_name("/opt/server --key k"), "server");
  EXPECT_EQ(program_name(""), "");
}

TEST(LiveGrowth, NeedsTwelveWindows) {
  LiveGrowth growth;
  for (int second = 0; second < 12; ++second) growth.add(second, 1 << 20 << second);
  EXPECT_FALSE(growth.judge().bytes_per_second);
  EXPECT_EQ(growth.judge().why_none, "growth is known after 12 s");
  growth.add(12, 1 << 30);
  EXPECT_NE(growth.judge().why_none, "growth is known after 12 s");
}

TEST(LiveGrowth, OfAFloorThatRisesSteadilyIsItsSlope) {
  LiveGrowth growth;
  // A saw tooth: what comes and goes within a step is no growth.
  for (int second = 0; second < 200; ++second)
    growth.add(second, 1'000'000'000 + 1'000'000 * second + second % 2 * 50'000'000);
  ASSERT_TRUE(growth.judge().bytes_per_second);
  EXPECT_DOUBLE_EQ(*growth.judge().bytes_per_second, 1'000'000);
}

TEST(LiveGrowth, ThatStoppedOrComesAndGoesIsNone) {
  LiveGrowth flat, saw;
  for (int second = 0; second < 400; ++second) {
    flat.add(second, second < 50 ? second * 10'000'000 : 500'000'000);
    saw.add(second, 500'000'000 + second % 20 * 10'000'000);
  }
  EXPECT_EQ(flat.judge().bytes_per_second, 0);
  EXPECT_EQ(saw.judge().bytes_per_second.value_or(0), 0);
}

TEST(LiveGrowth, GoesOnWhereTheRecordingIsReadAnew) {
  Tables tables;
  tables.devices = {Device{.type = 1, .index = 0}, Device{.type = 0, .index = -1}};
  std::unique_ptr<FollowObserver> observer = follow_for_pictures(tables);
  LiveState state;
  const auto keep_one = [&](uint64_t second, uint16_t device) {
    EventBatch batch;
    batch.overwrite(1);
    batch.time_ns[0] = second * 1'000'000'000, batch.address[0] = 0x1000 * (second + 1);
    batch.size_bytes[0] = 1'000'000, batch.stack[0] = 0, batch.thread[0] = 0;
    batch.device[0] = device, batch.action[0] = Action::kAlloc;
    observer->apply(batch, &state);
  };
  for (uint64_t second = 0; second < 30; ++second) keep_one(second, 1);
  EXPECT_DOUBLE_EQ(observer->growth_now(1, state, 30'000'000'000).bytes_per_second.value_or(0), 1'000'000);
  std::swap(tables.devices[0], tables.devices[1]);  // others, in the order of another reading
  observer = observer->anew();
  state = {};
  keep_one(31, 0);
  EXPECT_EQ(observer->growth_now(0, state, 32'000'000'000).why_none.find("is known after"),
            std::string::npos);
  keep_one(32, 1);
  EXPECT_NE(observer->growth_now(1, state, 33'000'000'000).why_none.find("is known after"),
            std::string::npos);
}

TEST(LiveGrowth, EndsWhereNothingHappensAnyMore) {
  LiveGrowth growth;
  for (int second = 0; second < 60; ++second) growth.add(second, 10'000'000 + 1'000'000 * second);
  EXPECT_DOUBLE_EQ(growth.judge().bytes_per_second.value_or(0), 1'000'000);
  growth.add(400, 70'000'000);
  EXPECT_EQ(growth.judge().bytes_per_second, 0);
}

// Every step keeps 256 KiB, of a state of 16 MiB; within, 2.5 MiB more are live for most of it.
void leak_in_steps(LiveGrowth* growth, double* now_s, uint64_t* step, int steps, double step_s) {
  for (int i = 0; i < steps; ++i, *now_s += step_s) {
    const uint64_t kept = (16 << 20) + (*step)++ * (256 << 10);
    growth->add(*now_s, kept);
    growth->add(*now_s + 0.01 * step_s, kept + (5 << 19));
    growth->add(*now_s + 0.95 * step_s, kept + (256 << 10));
    growth->end_step(*now_s + step_s);
  }
}

TEST(LiveGrowth, OfStepsThatGetSlowIsNotDenied) {
  LiveGrowth growth;
  double now_s = 0;
  uint64_t step = 0;
  leak_in_steps(&growth, &now_s, &step, 100, 0.3);
  for (int i = 0; i < 60; ++i) {
    leak_in_steps(&growth, &now_s, &step, 1, 1.1);
    ASSERT_GT(growth.judge().bytes_per_second.value_or(0), 256 * 1024 / 1.2) << now_s;
    ASSERT_LT(*growth.judge().bytes_per_second, 256 * 1024 / 0.29);
  }
}

TEST(LiveGrowth, IsNotDeniedBeforeTwelveSteps) {
  LiveGrowth growth;
  double now_s = 0;
  uint64_t step = 0;
  leak_in_steps(&growth, &now_s, &step, 11, 3);
  EXPECT_EQ(growth.judge().why_none, "growth is known after 12 steps");
  leak_in_steps(&growth, &now_s, &step, 10, 3);
  EXPECT_DOUBLE_EQ(growth.judge().bytes_per_second.value_or(0), (256 << 10) / 3.);
}

TEST(LiveGrowth, ThatIsSmallOrUnsteadyIsUnknown) {
  LiveGrowth small, unsteady;
  for (int second = 0; second <= 40; ++second) {
    small.add(second, (100 << 20) + second * (10 << 10));
    unsteady.add(second, second < 25 ? 100 << 20 : 108 << 20);
  }
  // 40 windows, without the first 10: of 29 rises.
  EXPECT_EQ(small.judge().why_none,
            "growth unknown: the minimum of live memory rose by 290 KiB only");
  EXPECT_EQ(unsteady.judge().why_none,
            "growth unknown: the minimum of live memory rose by 8.00 MiB, unsteadily");
}

TEST(LiveGrowth, IsToldOverHoursInAFixedNumberOfWindows) {
  LiveGrowth growth;
  for (int second = 0; second < 20'000; ++second) growth.add(second, 4'000'000 + second * 1000);
  EXPECT_NEAR(growth.judge().bytes_per_second.value_or(0), 1000, 1e-6);
}

TEST(LiveGrowth, OfARecordingIsToldAtTheFirstLookByAllThatItHas) {
  constexpr uint64_t kSecond = 1'000'000'000, kSeconds = 40;
  for_tests::TempFolder folder;
  for_tests::FakeProbe probe(0x1234, 100, 64);
  auto& thread = probe.start_thread(11, "main");
  probe.define_device(&thread, 5, 1, 0);
  const auto begin = static_cast<uint64_t>(steady_now_ns()) - kSeconds * kSecond;
  for (uint64_t i = 0; i < kSeconds; ++i)
    probe.alloc(&thread, begin + i * kSecond, 0x100000 * (i + 1), 1 << 20, 0, 5);
  ASSERT_EQ(probe.save(folder.file("a.gmp")), 0);
  auto follower = RecordingFollower::open(folder.file("a.gmp"), 0, follow_for_pictures);
  ASSERT_TRUE(follower);
  const auto state = follower->look();
  ASSERT_TRUE(state);
  ASSERT_EQ(state->devices.size(), 1u);
  EXPECT_DOUBLE_EQ(state->devices[0].growth.bytes_per_second.value_or(0), 1 << 20);
}

class CameraOfAFakeRoot : public FakeRoot {};

TEST_F(CameraOfAFakeRoot, SaysWhatTheFilesSay) {
  put_process(12, "Name:\tpython\nVmSize:\t 90 kB\n", 10);
  put_process(13, "Name:\tpython\nVmSize:\t 90 kB\n", 20);
  Camera camera({.root = root_});
  const Picture picture = camera.take();
  EXPECT_EQ(picture.memory.total.bytes, 1000u * 1024);
  EXPECT_EQ(picture.usable.used.bytes, 600u * 1024);
  ASSERT_EQ(picture.processes.size(), 2u);
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  EXPECT_EQ(picture.processes[0].pid, 13);
  EXPECT_EQ(picture.processes[0].resident_bytes, 20 * page);
  EXPECT_EQ(picture.processes[0].command, "python train.py");
  EXPECT_TRUE(picture.recordings.empty());
  EXPECT_TRUE(picture.alerts.empty());
}

TEST_F(CameraOfAFakeRoot, RaisesAnAlertOnceAndAgainUnderALowerThreshold) {
  Camera camera({.root = root_});
  put("/proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 150 kB\n");
  Picture picture = camera.take();
  ASSERT_EQ(picture.alerts.size(), 1u);
  EXPECT_FALSE(picture.alerts[0].is_critical);
  EXPECT_EQ(picture.alerts[0].subject, "memory of the machine");
  EXPECT_EQ(picture.alerts[0].text, "85.0 % of 1000 KiB are in use; the threshold is 80 %");
  EXPECT_EQ(camera.take().alerts.size(), 1u);
  camera.set_thresholds(60, 70);
  picture = camera.take();
  ASSERT_EQ(picture.alerts.size(), 2u);
  EXPECT_TRUE(picture.alerts[1].is_critical);
  EXPECT_EQ(picture.warning_count, 1u);
  EXPECT_EQ(picture.critical_count, 1u);
}

TEST_F(CameraOfAFakeRoot, ARecordingThatIsNoneIsShownWithTheReason) {
  put_process(77, "Name: python\nVmSize: 8 kB\n", 2);
  put("/proc/77/maps", "7f00-7f10 rw-s 00000000 08:01 5   /rec/host.77.777.gmp\n");
  put("/proc/77/environ", std::string("A=1\0RANK=3\0", 11));
  put("/rec/host.77.777.gmp", "this is no recording");
  Camera camera({.root = root_});
  const Picture picture = camera.take();
  ASSERT_EQ(picture.recordings.size(), 1u);
  EXPECT_EQ(picture.recordings[0].pid, 77);
  EXPECT_EQ(picture.recordings[0].rank, 3);
  EXPECT_FALSE(picture.recordings[0].problem.empty());
  EXPECT_TRUE(picture.processes[0].is_recorded);
  std::filesystem::remove_all(root_ + "/proc/77");
  EXPECT_TRUE(camera.take().recordings.empty());
}

TEST_F(CameraOfAFakeRoot, WithoutTimeForAllRecordingsAreReadInTurn) {
  std::filesystem::create_directories(root_ + "/rec");
  for (uint32_t pid : {77u, 78u}) {
    put_process(static_cast<int>(pid), "Name: python\nVmSize: 8 kB\n", 2);
    const std::string name = "/rec/host." + std::to_string(pid) + ".777.gmp";
    put("/proc/" + std::to_string(pid) + "/maps",
        "7f00-7f10 rw-s 00000000 08:01 5   " + name + '\n');
    for_tests::FakeProbe probe(pid, pid);
    probe.header().start_ticks = 777;
    probe.alloc(&probe.start_thread(1, "main"), 5000, 0x1000, pid, 0);
    ASSERT_EQ(probe.save(root_ + name), 0);
  }
  Camera camera({.most_look_ns = 1, .root = root_});
  const auto read = [](const Picture& picture) {
    std::vector<uint64_t> allocated;
    for (const PictureRecording& one : picture.recordings) {
      EXPECT_EQ(one.devices.empty(), !one.problem.empty());
      for (const PictureDevice& device : one.devices) allocated.push_back(device.allocated);
    }
    return allocated;
  };
  EXPECT_EQ(read(camera.take()), (std::vector<uint64_t>{77}));
  EXPECT_EQ(read(camera.take()), (std::vector<uint64_t>{77, 78}));
}

TEST(PictureJson, TellsCommandsWithTheirArgumentsOnlyWhereAsked) {
  Picture picture;
  picture.processes.push_back({7, "python a.py --key k", 1, false, {}});
  picture.accelerators.absent_because = "none";
  const auto of = [&](Commands commands) {
    return nlohmann::json::parse(picture_json(picture, commands))["processes"][0]["command"];
  };
  EXPECT_EQ(of(Commands::kWhole), "python a.py --key k");
  EXPECT_EQ(of(Commands::kProgramOnly), "a.py");
}

}  // namespace
}  // namespace gpumemprof
