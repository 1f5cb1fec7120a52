#include "probe/class_name.h"

#include <string.h>

namespace gpumemprof::probe {

size_t last_part(const char* mangled, char* out, size_t size) {
  const char* at = mangled;
  const char* end = mangled + strnlen(mangled, 1000);
  if (at < end && *at == 'N') ++at;
  if (end - at >= 2 && at[0] == 'S' && at[1] == 't') at += 2;  // std::
  const char* last = nullptr;
  size_t length = 0;
  while (at < end && *at >= '0' && *at <= '9') {
    size_t n = 0;
    while (at < end && *at >= '0' && *at <= '9' && n < 10000) {
      n = n * 10 + static_cast<size_t>(*at++ - '0');
    }
    if (n > static_cast<size_t>(end - at)) return 0;
    last = at, length = n, at += n;
  }
  if (!last || length == 0 || length > size) return 0;
  memcpy(out, last, length);
  return length;
}

}  // namespace gpumemprof::probe
