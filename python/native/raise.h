// An Error of the core as a Python exception.
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <type_traits>
#include <utility>

#include "base/error.h"

namespace gpumemprof::python {

/// ValueError, FileNotFoundError or OSError (ErrorCode::kSystem) with the one line that the command
/// would print: `subject`, most often a path, is put before the message where it is not there yet.
/// Needs the GIL.
[[noreturn]] void raise(const Error& error, const std::string& subject = {});

/// The value of the Result of `work`, which runs without the GIL; its error is raised.
template <class Work>
auto without_gil(const std::string& subject, Work work) {
  auto result = [&] {
    nanobind::gil_scoped_release release;
    return work();
  }();
  if (!result) raise(result.error(), subject);
  if constexpr (!std::is_void_v<typename decltype(result)::value_type>) return *std::move(result);
}

}  // namespace gpumemprof::python
