// A main for a fuzz target where there is no libFuzzer: runs it on files and on all that folders
// hold, and says how much work a byte the costliest one was. fuzz_NAME FILE|FOLDER…
#include <stdio.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "work_limit.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

/// libFuzzer's, which the targets' own mutators call; nothing here mutates.
extern "C" size_t LLVMFuzzerMutate(uint8_t*, size_t size, size_t) { return size; }

namespace {

uint64_t most_work = 0, most_a_byte = 0, inputs = 0;

void run(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  const uint64_t before = fuzz_work;
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  const uint64_t work = fuzz_work - before;
  most_work = std::max(most_work, work), ++inputs;
  if (!bytes.empty()) most_a_byte = std::max<uint64_t>(most_a_byte, work / bytes.size());
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (!std::filesystem::is_directory(argv[i])) {
      run(argv[i]);
      continue;
    }
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
      if (entry.is_regular_file()) run(entry.path());
    }
  }
  printf("%llu inputs, at most %llu steps, at most %llu a byte\n",
         static_cast<unsigned long long>(inputs), static_cast<unsigned long long>(most_work),
         static_cast<unsigned long long>(most_a_byte));
  return inputs == 0;
}
