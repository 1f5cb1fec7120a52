// Memory for tables of many megabytes that are filled from front to back.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <new>

namespace gpumemprof {

inline constexpr size_t kLargePageBytes = size_t{2} << 20;  // of x86-64

/// `bytes`, a multiple of kLargePageBytes, at a multiple of it, as pages of that size where the
/// system has them. Not by an aligned `new`, which leaves a hole of up to a large page of address
/// space before each.
inline void* map_large_pages(size_t bytes) {
  void* room = mmap(nullptr, bytes + kLargePageBytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED) throw std::bad_alloc();
  auto* begin = static_cast<char*>(room);
  const size_t before =
      (kLargePageBytes - reinterpret_cast<uintptr_t>(begin) % kLargePageBytes) % kLargePageBytes;
  if (before > 0) munmap(begin, before);
  munmap(begin + before + bytes, kLargePageBytes - before);
  madvise(begin + before, bytes, MADV_HUGEPAGE);  // a wish: without it nothing but time is lost
  return begin + before;
}

/// Regions of large pages that were freed, for those that are allocated next: the kernel clears
/// every page that it gives, a seventh of the time in which a large file is analyzed. Off until a
/// program turns it on that ends soon, as all that is kept is memory of its own. Thread-safe.
class FreedLargePages {
 public:
  static FreedLargePages& get();
  void keep_up_to(size_t bytes);
  /// `bytes`, a multiple of kLargePageBytes; what was in them may still be.
  void* take(size_t bytes);
  void give(void* memory, size_t bytes);

 private:
  std::mutex mutex_;
  std::map<char*, size_t> regions_;  // none touches another
  size_t most_bytes_ = 0, kept_bytes_ = 0;
};

/// A standard allocator that asks the system for its large pages (2 MiB on x86-64): a table of a
/// hundred megabytes is then a few dozen faults instead of tens of thousands, which are a tenth of
/// the time of filling it. Memory is taken as it is touched, so what is allocated in whole large
/// pages holds at most one too much. Smaller pieces are ordinary ones, and so is everything where
/// the system does not give large pages.
template <class T>
struct LargePages {
  using value_type = T;
  static constexpr size_t kPageBytes = kLargePageBytes;

  LargePages() = default;
  template <class Other>
  LargePages(const LargePages<Other>&) {}

  T* allocate(size_t count) {
    const size_t bytes = count * sizeof(T);
    if (bytes < kPageBytes) return static_cast<T*>(::operator new(bytes, kAlignment));
    return static_cast<T*>(FreedLargePages::get().take(whole(bytes)));
  }
  void deallocate(T* memory, size_t count) {
    if (count * sizeof(T) < kPageBytes) {
      ::operator delete(memory, kAlignment);
    } else {
      FreedLargePages::get().give(memory, whole(count * sizeof(T)));
    }
  }
  template <class Other>
  bool operator==(const LargePages<Other>&) const {
    return true;
  }

 private:
  static constexpr std::align_val_t kAlignment{alignof(T)};
  static size_t whole(size_t bytes) { return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes; }
};

}  // namespace gpumemprof
