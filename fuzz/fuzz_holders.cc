// What a process told of its holders: every index that comes out must be one of a holder.
#include <stdint.h>
#include <stdlib.h>

#include <string_view>

#include "recording/holders_file.h"
#include "work_limit.h"

using namespace gpumemprof;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const WorkLimit limit(size);
  const auto told = parse_holders({reinterpret_cast<const char*>(data), size});
  if (!told) {
    if (told.error().message.empty()) abort();
    return 0;
  }
  for (const HoldersLook& look : told->looks) {
    for (const auto& [address, holder] : look.by_address) {
      if (holder >= look.holders.size()) abort();
    }
  }
  return 0;
}
