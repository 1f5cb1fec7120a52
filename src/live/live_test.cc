// What is watched, from files of our own making.
#include <gtest/gtest.h>

#include "devices/fake_root.h"
#include "live/alerts.h"
#include "live/sampler.h"

namespace gpumemprof {
namespace {

TEST_F(FakeRoot, AProcessThatIsNotRecordedIsItsRss) {
  put_process(12, "Name:\tpython\nVmSize:\t 90 kB\n", 10);
  auto sampler = Sampler::open({.pid = 12, .root = root_});
  ASSERT_TRUE(sampler) << sampler.error().message;
  EXPECT_EQ(sampler->subject(), "process 12 (python train.py), not recorded: its RSS");
  const auto events = sampler->sample();
  ASSERT_EQ(events.size(), 1u);
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  EXPECT_EQ(events[0].allocated_bytes, 10 * page);
  EXPECT_EQ(events[0].change_bytes, 0) << "the first sample is where counting begins";
  EXPECT_EQ(events[0].used_bytes, 600u * 1024);
  EXPECT_EQ(events[0].device_id, -1);
  EXPECT_NE(events[0].metadata.find("\"basis\":\"process_rss\""), std::string::npos);
  put_process(12, "Name:\tpython\nVmSize:\t 90 kB\n", 14);
  EXPECT_EQ(sampler->sample()[0].change_bytes, static_cast<int64_t>(4 * page));
  std::filesystem::remove_all(root_ + "/proc/12");
  EXPECT_TRUE(sampler->sample().empty());
  EXPECT_EQ(sampler->state(), WatchState::kEnded);
}

TEST_F(FakeRoot, WithoutARecordedProcessItIsTheMachine) {
  auto sampler = Sampler::open({.root = root_});
  ASSERT_TRUE(sampler);
  const auto events = sampler->sample();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].pid, -1);
  EXPECT_EQ(events[0].allocated_bytes, 600u * 1024);
  EXPECT_FALSE(Sampler::open({.pid = 99, .root = root_})) << "there is no such process";
}

TEST_F(FakeRoot, WhereTheRecordedProcessHasGoneBeforeTheFirstSampleItIsTheMachine) {
  put_process(77, "Name: python\nVmRSS: 8 kB\n", 2);
  put("/proc/77/maps", "7f00-7f10 rw-s 00000000 08:01 5   /rec/host.77.777.gmp\n");
  auto sampler = Sampler::open({.root = root_});
  ASSERT_TRUE(sampler);
  EXPECT_TRUE(sampler->subject().starts_with("process 77"));
  std::filesystem::remove_all(root_ + "/proc/77");
  const auto events = sampler->sample();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].allocated_bytes, 600u * 1024);
  EXPECT_EQ(sampler->state(), WatchState::kRunning);
}

TEST_F(FakeRoot, WhereTheRecordedProcessHasEndedALaterOneIsAwaited) {
  auto put_recorded = [&](int pid, int resident_pages) {
    put_process(pid, "Name:\tpython\nVmSize:\t 90 kB\n", resident_pages);
    const std::string number = std::to_string(pid);
    put("/proc/" + number + "/maps",
        "7f00-7f10 rw-s 00000000 08:01 5   /rec/host." + number + ".gmp\n");
  };
  put_recorded(77, 2);
  auto sampler = Sampler::open({.root = root_});
  ASSERT_TRUE(sampler);
  ASSERT_EQ(sampler->sample().size(), 1u);
  std::filesystem::remove_all(root_ + "/proc/77");
  EXPECT_TRUE(sampler->sample().empty());
  EXPECT_EQ(sampler->state(), WatchState::kRunning) << "only a process that was asked for ends it";
  put_recorded(78, 3);
  put_recorded(77, 9);
  std::vector<TelemetryEvent> events;  // they are looked for once a second
  for (int i = 0; i < 1000 && (events = sampler->sample()).empty(); ++i) usleep(10'000);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].pid + events[1].pid, 77 + 78);
  for (const TelemetryEvent& event : events)
    EXPECT_EQ(event.change_bytes, 0) << "a PID that comes back is another process";
}

TelemetryEvent at(uint64_t used, int64_t seconds) {
  TelemetryEvent event;
  event.timestamp_ns = seconds * 1'000'000'000;
  event.used_bytes = used, event.total_bytes = 100;
  return event;
}

TEST(Alerts, ComeOnceAndAgainOnlyAfterARealFall) {
  Alerts alerts({.warning_percent = 80, .critical_percent = 95, .least_pause_ns = 0});
  EXPECT_FALSE(alerts.look(at(79, 0)));
  EXPECT_EQ(alerts.look(at(80, 1))->event_type, "warning");
  EXPECT_FALSE(alerts.look(at(85, 2)));
  EXPECT_FALSE(alerts.look(at(78, 3))) << "within the hysteresis of 5";
  EXPECT_FALSE(alerts.look(at(81, 4)));
  EXPECT_FALSE(alerts.look(at(74, 5)));
  EXPECT_EQ(alerts.look(at(96, 6))->event_type, "critical");
  EXPECT_FALSE(alerts.look(at(96, 7)));
}

TEST(Alerts, AreNotMoreOftenThanThePause) {
  Alerts alerts({.least_pause_ns = 60'000'000'000});
  EXPECT_TRUE(alerts.look(at(81, 0)));
  EXPECT_FALSE(alerts.look(at(10, 10)));
  EXPECT_FALSE(alerts.look(at(81, 20)));
  EXPECT_FALSE(alerts.look(at(10, 70)));
  EXPECT_TRUE(alerts.look(at(81, 80)));
}

TEST(Alerts, KeptBackComeWhenThePauseIsOverIfTheLevelHolds) {
  Alerts alerts({.least_pause_ns = 60'000'000'000});
  EXPECT_TRUE(alerts.look(at(81, 0)));
  EXPECT_FALSE(alerts.look(at(10, 10)));
  EXPECT_FALSE(alerts.look(at(81, 20)));
  EXPECT_FALSE(alerts.look(at(82, 59)));
  EXPECT_EQ(alerts.look(at(83, 60))->event_type, "warning");
  EXPECT_FALSE(alerts.look(at(83, 200)));
}

TEST(Alerts, LookAtTheMostOfAllFigures) {
  TelemetryEvent event = at(10, 0);
  event.allocated_bytes = 20, event.reserved_bytes = 90;
  EXPECT_EQ(used_percent(event), 90);
  event.total_bytes = std::nullopt;
  EXPECT_FALSE(used_percent(event));
}

}  // namespace
}  // namespace gpumemprof
