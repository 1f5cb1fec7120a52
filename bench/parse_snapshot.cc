// parse_snapshot FILE: reads a snapshot and nothing more; one line of JSON.
#include <chrono>
#include <cstdio>

#include "readers/torch_snapshot/read.h"

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: parse_snapshot FILE\n"), 2;
  const auto begin = std::chrono::steady_clock::now();
  auto snapshot = gpumemprof::read_torch_snapshot(argv[1]);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  if (!snapshot) return std::fprintf(stderr, "%s\n", snapshot.error().message.c_str()), 1;
  size_t events = 0;
  for (const auto& trace : snapshot->traces) events += trace.events.size();
  std::printf("{\"seconds\": %.6f, \"bytes\": %llu, \"events\": %zu}\n", took.count(),
              static_cast<unsigned long long>(snapshot->info.bytes), events);
}
