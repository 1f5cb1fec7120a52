// What the name of one of TensorFlow's allocators says of the memory that it hands out.
#pragma once

#include <string_view>

#include "trace/tables.h"

namespace gpumemprof {

/// "GPU_0_bfc" is memory of GPU 0, "bfc_cpu_allocator_for_gpu" and "gpu_host_bfc" are memory of the
/// host, as in recordings. The sizes are those that the pool made of the requests. `name` may hold
/// anything; of a long one the beginning is kept.
Device tensorflow_device(std::string_view name);

}  // namespace gpumemprof
