// A column of a table whose length is not known before its last row.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>

#include "base/large_pages.h"

namespace gpumemprof {

/// A vector of plain values that grows without copying: from a large page on, the kernel moves its
/// pages. A std::vector of 400 MB was touched and copied twice over, a quarter of the time in which
/// a table of 100 million rows was filled. References end with every growth. Throws std::bad_alloc.
template <class T>
class GrowingColumn {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  using value_type = T;

  GrowingColumn() = default;
  GrowingColumn(const GrowingColumn& other) {
    if (!other.empty())
      std::memcpy(static_cast<void*>(extend(other.size_)), other.values_, other.size_ * sizeof(T));
  }
  GrowingColumn(GrowingColumn&& other) noexcept { swap(other); }
  GrowingColumn& operator=(GrowingColumn other) noexcept {
    swap(other);
    return *this;
  }
  ~GrowingColumn() { release(); }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* data() { return values_; }
  const T* data() const { return values_; }
  T* begin() { return values_; }
  T* end() { return values_ + size_; }
  const T* begin() const { return values_; }
  const T* end() const { return values_ + size_; }
  T& operator[](size_t index) { return values_[index]; }
  const T& operator[](size_t index) const { return values_[index]; }

  void push_back(T value) {
    if (size_ == capacity_) reserve(std::max<size_t>(64, 2 * capacity_));
    values_[size_++] = value;
  }
  void resize(size_t size, T value = T()) {
    if (size > capacity_) reserve(std::max(size, 2 * capacity_));
    if (size > size_) std::fill(values_ + size_, values_ + size, value);
    size_ = size;
  }
  /// `count` more at the end, which hold anything until they are written: where they begin.
  T* extend(size_t count) {
    if (count > capacity_ - size_) reserve(std::max(size_ + count, 2 * capacity_));
    return values_ + std::exchange(size_, size_ + count);
  }
  void reserve(size_t capacity) {
    if (capacity <= capacity_) return;
    if (capacity > SIZE_MAX / 4 / sizeof(T)) throw std::bad_alloc();
    size_t bytes = capacity * sizeof(T);
    if (bytes < kLargePageBytes) {
      auto* values = static_cast<T*>(std::realloc(static_cast<void*>(values_), bytes));
      if (values == nullptr) throw std::bad_alloc();
      values_ = values;
    } else {
      bytes = (bytes + kLargePageBytes - 1) / kLargePageBytes * kLargePageBytes;
      values_ = mapped_bytes_ > 0 ? moved(bytes) : first_mapped(bytes);
      mapped_bytes_ = bytes;
    }
    capacity_ = bytes / sizeof(T);
  }

 private:
  /// Out of the heap, into pages of its own.
  T* first_mapped(size_t bytes) {
    auto* values = static_cast<T*>(map_large_pages(bytes));
    if (size_ > 0) std::memcpy(static_cast<void*>(values), values_, size_ * sizeof(T));
    std::free(values_);
    return values;
  }
  /// To an address that is a multiple of a large page again: else the kernel splits them.
  T* moved(size_t bytes) {
    void* place = map_large_pages(bytes);
    void* values =
        mremap(values_, mapped_bytes_, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, place);
    if (values == MAP_FAILED) {
      munmap(place, bytes);
      throw std::bad_alloc();
    }
    return static_cast<T*>(values);
  }
  void release() {
    if (mapped_bytes_ > 0)
      munmap(values_, mapped_bytes_);
    else
      std::free(values_);
  }
  void swap(GrowingColumn& other) noexcept {
    std::swap(values_, other.values_), std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_), std::swap(mapped_bytes_, other.mapped_bytes_);
  }

  T* values_ = nullptr;
  size_t size_ = 0, capacity_ = 0;
  size_t mapped_bytes_ = 0;  // 0: in the heap
};

}  // namespace gpumemprof
