// The memory of a training loop, against the stand-ins tests/probe/fake_c10.cc and
// fake_c10_cuda.cc: steps followed|late|cpu marks|plain [wait]. faces.py has the same as a list.
#include <gpumemprof/gpumemprof.h>

#include <cstdint>
#include <cstdio>
#include <cstring>

namespace c10 {
void* alloc_cpu(size_t);
void free_cpu(void*);
}  // namespace c10
namespace c10::cuda::detail {
void init_p2p_access_cache(int64_t);
}
namespace c10::cuda::CUDACachingAllocator {
void begin(size_t);
void make(size_t, size_t);
void drop(size_t, size_t, bool);
void complete(size_t, size_t);
}  // namespace c10::cuda::CUDACachingAllocator

constexpr size_t kBase = 0x7f0000000000;

struct Block {
  size_t address, asked;
};

bool g_is_cpu, g_has_marks;

/// `at`: where on the device; on the CPU it is the allocator's choice.
Block make(size_t at, size_t asked, int role = 0, const char* name = "") {
  Block block{kBase + at, asked};
  if (g_is_cpu) {
    block.address = reinterpret_cast<size_t>(c10::alloc_cpu(asked));
  } else {
    c10::cuda::CUDACachingAllocator::make(block.address, asked);
  }
  if (g_has_marks && role != 0) {
    gpumemprof_mark_storage(reinterpret_cast<const void*>(block.address), role, name);
  }
  return block;
}

void drop(Block block, bool is_delayed = false) {
  if (g_is_cpu) return c10::free_cpu(reinterpret_cast<void*>(block.address));
  c10::cuda::CUDACachingAllocator::drop(block.address, block.asked, is_delayed);
}

int main(int argc, char** argv) {
  g_is_cpu = std::strcmp(argv[1], "cpu") == 0;
  g_has_marks = std::strcmp(argv[2], "marks") == 0 && gpumemprof_mark_storage;
  if (std::strcmp(argv[1], "followed") == 0) c10::cuda::detail::init_p2p_access_cache(1);
  if (!g_is_cpu) c10::cuda::CUDACachingAllocator::begin(kBase);
  make(0, 4000, GPUMEMPROF_ROLE_PARAMETER, "net.weight");
  make(4096, 100, GPUMEMPROF_ROLE_PARAMETER, "net.bias");
  for (size_t step = 0; step < 3; ++step) {
    Block small[7];
    const uint64_t phase = g_has_marks ? gpumemprof_phase_begin("small ones") : 0;
    for (size_t i = 0; i < 7; ++i) small[i] = make(4608 + 512 * i, 1);
    for (const Block& block : small) drop(block);
    if (g_has_marks) gpumemprof_phase_end(phase);
    const Block work = make(4608, 1500);
    const Block gradient =
        make(6144, 1100 + step, GPUMEMPROF_ROLE_GRADIENT, "net.weight");
    drop(work, step == 1);
    if (step == 1) {
      const Block late = make(7680, 300, GPUMEMPROF_ROLE_GRADIENT, "net.bias");
      if (!g_is_cpu) c10::cuda::CUDACachingAllocator::complete(work.address, work.asked);
      drop(late);
    }
    drop(gradient);
    if (g_has_marks) gpumemprof_step_end();
  }
  std::puts("done");
  std::fflush(stdout);
  if (argc > 3) std::getchar();
}
