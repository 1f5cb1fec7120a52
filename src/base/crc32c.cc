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
__attribute__((target("sse4.2"))) uint32_t update_sse42(uint32_t crc, const unsigned char* p,
                                                        size_t n) {
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
