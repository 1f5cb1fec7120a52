// Shared by the files of Level Zero.
#pragma once

#include "driver_proxy/watch.h"

namespace gpumemprof::driver_proxy {

using ZeHandle = void*;

/// Its result codes as the other drivers': kSuccess, kOutOfMemory, or -1.
Result in_common(Result code);
/// For a function that this loader lacks.
Result or_unsupported(Result code);

/// The probe's number of a device; -1 if unknown, which is counted.
int device_of(Watch& watch, ZeHandle device);

/// Like Watch::took, on `device`; host memory has none.
void took_on(Watch& watch, Result code, probe::DriverKind kind, void* const* out,
             uint64_t size_bytes, ZeHandle device);

/// Whether a descriptor is followed by one of this type. Only for one that the driver has accepted.
bool is_followed_by(const void* desc, uint32_t type);
/// ZE_STRUCTURE_TYPE_EXTERNAL_MEMORY_IMPORT_FD: the memory already exists and belongs to another
/// process.
inline constexpr uint32_t kImportsFd = 0x19;

inline Pointer key_of(const void* address) { return reinterpret_cast<Pointer>(address); }

}  // namespace gpumemprof::driver_proxy
