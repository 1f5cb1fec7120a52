// What analyze and export do before they read.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "trace/allocator_trace.h"
#include "trace/event_source.h"

namespace gpumemprof {

/// Opens what the user named: recordings, one snapshot of PyTorch's memory, or one file of another
/// program (readers/foreign_file.h), told apart by their content. Folders whose writers are gone
/// are sealed first where `seal` is set and they can be written; that this fails is no error, since
/// unsealed recordings read as well, only slower.
Result<std::unique_ptr<EventSource>> open_input(const std::vector<std::string>& paths, bool seal);

/// What PyTorch's CUDA allocator told of itself: a snapshot of it, or a recording that followed it.
/// `seal` as above. Errors: those of the readers; kUnsupported with the reason where the input has
/// no such history, or those of several processes.
Result<AllocatorSnapshot> open_allocator_history(const std::vector<std::string>& paths, bool seal);

/// Empty where it is not known; then paths are shown whole.
std::string working_folder();

}  // namespace gpumemprof
