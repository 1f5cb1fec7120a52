// Resident memory of this process, read without the costs of Python's files.
#pragma once

#include <cstdint>
#include <utility>

namespace gpumemprof::python {

/// Resident bytes now (/proc/self/statm) and the highest that getrusage knows of; 0 where the
/// system does not say. The file is opened each time: a descriptor kept open would outlive a fork,
/// and the program could close and reuse it.
std::pair<uint64_t, uint64_t> resident_bytes();

}  // namespace gpumemprof::python
