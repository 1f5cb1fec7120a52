// fuzz_corpus DIR: small files that between them hold every kind of chunk, raw and sealed.
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "recording/fake_probe.h"
#include "recording/file_sealer.h"

using namespace gpumemprof;

namespace {

void program(testing::FakeProbe* probe, uint64_t events) {
  gethostname(probe->header().host, sizeof(probe->header().host) - 1);
  auto& thread = probe->start_thread(11, "main");
  probe->define_device(&thread, 5, 1, 0);
  uint32_t stacks[2] = {probe->define_stack(&thread, {"main", "a"}),
                        probe->define_stack(&thread, {"main", "b"})};
  for (uint64_t i = 0; i < events; ++i) {
    uint32_t device = i % 7 == 0 ? 5 : 0;
    probe->alloc(&thread, 5000 + 10 * i, 0x1000 + 64 * (i % 9), 100 * (i % 4), stacks[i % 2],
                 device);
    if (device == 5) probe->totals(&thread, 5000 + 10 * i, 100 * i, 1024 * i, 5);
    probe->free(&thread, 5005 + 10 * i, 0x1000 + 64 * (i % 9), device, device ? 100 * (i % 4) : 0);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return fprintf(stderr, "usage: fuzz_corpus DIR\n"), 2;
  const std::string folder = argv[1];
  mkdir(folder.c_str(), 0700);
  for (uint64_t events : {1, 40, 400}) {
    for (bool sealed : {false, true}) {
      testing::FakeProbe probe(1, 100, 40);
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
