// What a user types to see some blocks alone: any bytes are a filter or are refused with a place in
// the text, and a filter's text means the same filter again.
#include <stdint.h>
#include <stdlib.h>

#include <string_view>

#include "page/filter.h"
#include "work_limit.h"

using namespace gpumemprof;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const WorkLimit limit(size);
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto filter = Filter::parse(text);
  if (!filter) {
    if (filter.error().message.empty() || filter.error().at > size) abort();
    return 0;
  }
  if (size > Filter::kMostBytes || filter->text() != text) abort();
  const auto again = Filter::parse(filter->text());
  if (!again || again->takes_all() != filter->takes_all()) abort();
  return 0;
}
