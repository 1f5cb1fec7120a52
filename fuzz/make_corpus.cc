// fuzz_corpus DIR: small files that between them hold every kind of chunk, raw and sealed.
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "base/varint.h"
#include "recording/fake_probe.h"
#include "recording/file_sealer.h"
#include "recording/samples_writer.h"
#include "recording/test_reading.h"

using namespace gpumemprof;

namespace {

/// What the probe writes of PyTorch's CUDA allocator: facts, a segment, a block of a private pool
/// on a stream whose free waits, a refusal.
void follow_allocator(for_tests::FakeProbe* probe, for_tests::FakeProbe::Thread* thread,
                      uint32_t stack) {
  using namespace format;
  std::string device, allocator, place;
  for (uint8_t byte : {6, 1, 0, 2, 0}) device.push_back(static_cast<char>(byte));
  probe->define(thread, kDefDevice, device);
  for (uint8_t byte : {1, 0, 1, 0}) allocator.push_back(static_cast<char>(byte));
  put_number(&allocator, uint64_t{1} << 30);
  put_number(&allocator, uint16_t{6}), put_number(&allocator, uint16_t{0});
  probe->define(thread, kDefAllocator, allocator + "2.13.0");
  put_number(&place, uint32_t{1}), put_number(&place, int64_t{64});
  put_number(&place, int64_t{0}), put_number(&place, int64_t{3});
  probe->define(thread, kDefPlacement, place);
  const auto put = [&](RawAction action, uint64_t address, uint64_t size, uint32_t id) {
    probe->record(thread, pack(5000, address, 6, size, action, id,
                               salt(thread->stream, thread->events_sequence)));
  };
  put(kRawWide, 0, 0, 16 | kDetailSegmentAlloc), put(kRawTotals, 0x100000, 4096, stack);
  put(kRawWide, 1000, 0, 16), put(kRawAlloc, 0x100000, 1024, stack);
  put(kRawWide, 0, 0, 16 | kDetailDelayedFree), put(kRawFreeRequested, 0x100000, 1024, 0);
  put(kRawWide, 0, 0, kDetailDeviceFree), put(kRawTotals, 512, 0, 0);
  put(kRawOom, 0, 1 << 20, stack), put(kRawFreeCompleted, 0x100000, 0, 0);
  put(kRawWide, 0, 0, 16 | kDetailSegmentFree), put(kRawTotals, 0x100000, 4096, stack);
}

/// What PyTorch's half of the probe says: a module, a tensor that autograd saved, a parameter, a
/// phase, a step.
void say_marks(for_tests::FakeProbe* probe, for_tests::FakeProbe::Thread* thread,
               uint64_t time_ns) {
  using namespace format;
  const uint32_t name = probe->define_text(thread, "encoder.0");
  probe->mark(thread, time_ns, kMarkModule, 0x7f00, 0, name);
  probe->mark(thread, time_ns, kMarkPhaseBegin, 1, 0, name);
  probe->alloc(thread, time_ns, 0x9000, 64,
               probe->define_labelled_stack(thread, {{"<torch module>", "Linear@7f00"}}));
  probe->mark(thread, time_ns, kMarkSaved, 0x9000, 1);
  probe->mark(thread, time_ns, kMarkRole, 0x9000, kRoleParameter, name);
  probe->mark(thread, time_ns, kMarkPhaseEnd, 1);
  probe->mark(thread, time_ns, kMarkStep, 0, 1);
}

void program(for_tests::FakeProbe* probe, uint64_t events) {
  gethostname(probe->header().host, sizeof(probe->header().host) - 1);
  auto& thread = probe->start_thread(11, "main");
  probe->define_device(&thread, 5, 1, 0);
  uint32_t stacks[2] = {probe->define_stack(&thread, {"main", "a"}),
                        probe->define_stack(&thread, {"main", "b"})};
  follow_allocator(probe, &thread, stacks[0]);
  for (uint64_t i = 0; i < events; ++i) {
    uint32_t device = i % 7 == 0 ? 5 : 0;
    if (i % 5 == 0) probe->begin_step(&thread, i % 15 == 0 ? INT64_MIN : static_cast<int64_t>(i));
    probe->alloc(&thread, 5000 + 10 * i, 0x1000 + 64 * (i % 9), 100 * (i % 4), stacks[i % 2],
                 device);
    if (i % 20 == 7) say_marks(probe, &thread, 5000 + 10 * i);
    if (device == 5) probe->totals(&thread, 5000 + 10 * i, 100 * i, 1024 * i, 5);
    probe->free(&thread, 5005 + 10 * i, 0x1000 + 64 * (i % 9), device, device ? 100 * (i % 4) : 0);
  }
}

/// A file of samples: two chunks, every kind of value, a series that ends. Without the holes that
/// its places leave, which would only make it large.
bool sample_machine(const std::string& folder) {
  auto writer = SamplesWriter::create(folder, {.pid = 1}, 0);
  for (uint64_t i = 0; writer && i < 70; ++i) {
    TakenSample sample{5000 + i, i == 3 ? SampleCause::kOom : SampleCause::kPeriod, {}};
    const auto put = [&](const char* device, const char* field, int64_t pid, SampledValue value) {
      sample.values.emplace_back(SampleKey{"NVML", device, field, pid}, std::move(value));
    };
    put("nvidia:0", "name", 0, SampledValue::of_text("A GPU"));
    put("nvidia:0", "used_bytes", 0, i % 5 ? SampledValue::of(i * i) : SampledValue::absent("why"));
    put("host", "total_bytes", 0, SampledValue::of(9));
    if (i < 30) put("host", "resident_bytes", 7, SampledValue::of(i));
    if (!writer->add(sample)) return false;
  }
  if (!writer) return false;
  const std::string whole = for_tests::read_file(writer->path());
  std::string dense;
  for (size_t at = 0; at < whole.size(); at += format::kPage) {
    const std::string page = whole.substr(at, format::kPage);
    if (page.find_first_not_of('\0') != page.npos) dense += page;
  }
  unlink(writer->path().c_str());
  for_tests::write_file(folder + "/samples", dense);
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return fprintf(stderr, "usage: fuzz_corpus DIR\n"), 2;
  const std::string folder = argv[1];
  mkdir(folder.c_str(), 0700);
  if (!sample_machine(folder)) return 1;
  for (uint64_t events : {1, 40, 400}) {
    for (bool sealed : {false, true}) {
      for_tests::FakeProbe probe(1, 100, 40);
      program(&probe, events);
      std::string path = folder + '/' + (sealed ? "sealed-" : "raw-") + std::to_string(events);
      if (probe.save(path) != 0) return perror(path.c_str()), 1;
      if (!sealed) continue;
      auto file = open_file(path, FileMode::kReadWrite);
      if (!file) return 1;
      auto sealer = FileSealer::open(file->get(), {.checkpoint_bytes = 1, .gather_bytes = 0});
      if (!sealer || !(*sealer)->advance(5000 + 5 * events, true) || !(*sealer)->finish()) return 1;
    }
  }
  return 0;
}
