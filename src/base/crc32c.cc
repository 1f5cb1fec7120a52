#include "base/crc32c.h"

#include <string.h>

namespace gpumemprof {
namespace {

constexpr uint32_t kPolynomial = 0x82f63b78;  // 0x1edc6f41 bit-reversed, RFC 3720 appendix B.4

struct Tables {
  uint32_t t[8][256];
};

constexpr Tables make_tables() {
  Tables tables{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? kPolynomial : 0);
    tables.t[0][i] = crc;
  }
  for (uint32_t i = 0; i < 256; ++i) {
    for (int k = 1; k < 8; ++k) {
      uint32_t previous = tables.t[k - 1][i];
      tables.t[k][i] = previous >> 8 ^ tables.t[0][previous & 255];
    }
  }
  return tables;
}

constexpr Tables kTables = make_tables();

/// The instruction takes three cycles and one may begin in each, so three lanes of this length go
/// side by side.
constexpr size_t kLaneBytes = 1024;

struct Shift {
  uint32_t t[4][256];
};

/// What kLaneBytes zeros make of a CRC, byte by byte of it: a CRC without the inversions is linear.
constexpr Shift make_shift() {
  Shift shift{};
  for (int bit = 0; bit < 32; ++bit) {
    uint32_t crc = uint32_t{1} << bit;
    for (size_t i = 0; i < kLaneBytes; ++i) crc = crc >> 8 ^ kTables.t[0][crc & 255];
    for (uint32_t byte = 0; byte < 256; ++byte) {
      if (byte >> bit % 8 & 1) shift.t[bit / 8][byte] ^= crc;
    }
  }
  return shift;
}

constexpr Shift kShift = make_shift();

uint32_t after_a_lane_of_zeros(uint32_t crc) {
  const auto& t = kShift.t;
  return t[0][crc & 255] ^ t[1][crc >> 8 & 255] ^ t[2][crc >> 16 & 255] ^ t[3][crc >> 24];
}

uint32_t update_portable(uint32_t crc, const unsigned char* p, size_t n) {
  const auto& t = kTables.t;
  for (; n >= 8; n -= 8, p += 8) {
    uint64_t w;
    memcpy(&w, p, 8);
    w ^= crc;
    crc = t[7][w & 255] ^ t[6][w >> 8 & 255] ^ t[5][w >> 16 & 255] ^ t[4][w >> 24 & 255] ^
          t[3][w >> 32 & 255] ^ t[2][w >> 40 & 255] ^ t[1][w >> 48 & 255] ^ t[0][w >> 56];
  }
  while (n--) crc = crc >> 8 ^ t[0][(crc ^ *p++) & 255];
  return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2,crc32"))) uint32_t update_sse42(uint32_t crc, const unsigned char* p,
                                                        size_t n) {
  for (; n >= 3 * kLaneBytes; n -= 3 * kLaneBytes, p += 3 * kLaneBytes) {
    uint64_t first = crc, second = 0, third = 0;
    for (size_t i = 0; i < kLaneBytes; i += 8) {
      uint64_t word[3];
      memcpy(&word[0], p + i, 8);
      memcpy(&word[1], p + kLaneBytes + i, 8);
      memcpy(&word[2], p + 2 * kLaneBytes + i, 8);
      first = __builtin_ia32_crc32di(first, word[0]);
      second = __builtin_ia32_crc32di(second, word[1]);
      third = __builtin_ia32_crc32di(third, word[2]);
    }
    crc = after_a_lane_of_zeros(static_cast<uint32_t>(first)) ^ static_cast<uint32_t>(second);
    crc = after_a_lane_of_zeros(crc) ^ static_cast<uint32_t>(third);
  }
  uint64_t c = crc;
  for (; n >= 8; n -= 8, p += 8) {
    uint64_t w;
    memcpy(&w, p, 8);
    c = __builtin_ia32_crc32di(c, w);
  }
  crc = static_cast<uint32_t>(c);
  while (n--) crc = __builtin_ia32_crc32qi(crc, *p++);
  return crc;
}

// cpuid by hand: __builtin_cpu_supports needs libgcc's __cpu_model, which the probe does not link.
bool has_sse42() {
  uint32_t a = 1, b, c = 0, d;
  __asm__("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
  return c >> 20 & 1;
}
#endif

}  // namespace

uint32_t crc32c(uint32_t crc, const void* data, size_t size) {
  const auto* p = static_cast<const unsigned char*>(data);
#if defined(__x86_64__)
  static int sse42 = -1;  // a race writes the same value twice
  int known = __atomic_load_n(&sse42, __ATOMIC_RELAXED);
  if (known < 0) __atomic_store_n(&sse42, known = has_sse42(), __ATOMIC_RELAXED);
  if (known) return ~update_sse42(~crc, p, size);
#endif
  return ~update_portable(~crc, p, size);
}

}  // namespace gpumemprof
