// The reader of samples, and what is made of them, on any bytes.
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "analysis/driver/device_use.h"
#include "mend_crcs.h"
#include "recording/samples_file.h"
#include "work_limit.h"

using namespace gpumemprof;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const WorkLimit limit(size);
  static const int fd = memfd_create("fuzz", 0);
  static const std::string path = "/proc/self/fd/" + std::to_string(fd);
  if (ftruncate(fd, 0) != 0 || pwrite(fd, data, size, 0) != static_cast<ssize_t>(size)) return 0;
  const auto read = read_samples_file(path, 1);
  if (!read) return 0;
  for (size_t series = 0; series < read->series.size(); ++series) {
    uint32_t next = 0;
    for (const auto& point : read->points[series]) {
      const bool is_text = point.kind == SampledKind::kText || point.kind == SampledKind::kAbsent;
      if (point.look < next || point.look >= read->looks.size()) abort();
      if (is_text && point.number >= read->texts.size()) abort();
      next = point.look + 1;
    }
  }
  for (size_t look = 1; look < read->looks.size(); ++look) {
    if (read->looks[look].time_ns < read->looks[look - 1].time_ns) abort();
  }
  if (const auto use = device_use({*read}, size)) {
    for (const MemoryUse& one : use->devices) {
      if (one.looks.size() > use->looks) abort();
    }
  }
  return 0;
}
