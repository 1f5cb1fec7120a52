// Files of other programs that are read as a stream of events, told apart by their content. Those
// of PyTorch's allocator are not among them: they tell more than a stream can
// (torch_snapshot/read.h).
#pragma once

#include <memory>
#include <string>

#include "base/error.h"
#include "trace/event_source.h"

namespace gpumemprof {

/// What a file is called in an error, "a profile of TensorFlow's" or the like; null where it is
/// none of these files, or cannot be read.
const char* foreign_file_kind(const std::string& path);

/// Reads one of them. Errors: those of its reader; kBadInput where it is none.
Result<std::unique_ptr<EventSource>> open_foreign_file(const std::string& path);

}  // namespace gpumemprof
