// The Arrow PyCapsule interface for streams.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "native/arrow_stream.h"

namespace gpumemprof::python {

inline nanobind::capsule arrow_capsule(std::unique_ptr<ArrowTable> table) {
  auto stream = std::make_unique<ArrowArrayStream>();
  fill_arrow_stream(std::move(table), stream.get());
  // Whoever takes the stream over leaves a null release behind.
  return nanobind::capsule(stream.release(), "arrow_array_stream", [](void* p) noexcept {
    auto* left = static_cast<ArrowArrayStream*>(p);
    if (left->release) left->release(left);
    delete left;
  });
}

}  // namespace gpumemprof::python
