// The driver's live blocks, and how one becomes an event.
#pragma once

#include "probe/driver_link.h"
#include "probe/stream.h"

namespace gpumemprof::probe {

/// Records an event of the kind's memory on the device. `caller`: a return address, or null.
void record_driver(format::RawAction action, DriverKind kind, int device, uint64_t key,
                   uint64_t size_bytes, const void* caller);

bool driver_is_wanted();
void driver_took(DriverKind kind, int device, uint64_t key, uint64_t size_bytes,
                 const void* caller);
DriverLink::Gone driver_gave(uint32_t kinds, uint64_t key);
void driver_refused(DriverKind kind, int device, uint64_t size_bytes, const void* caller);
void driver_level(DriverKind kind, int device, uint64_t key, bool (*read)(uint64_t, uint64_t*),
                  const void* caller);

/// A size could not be queried, or something could not be tracked.
void driver_lost();

// handles.cc
void driver_created(uint64_t handle, int device, uint64_t size_bytes, bool is_own,
                    const void* caller);
void driver_retained(uint64_t handle);
void driver_released(uint64_t handle);
void driver_mapped(uint64_t address, uint64_t size_bytes, uint64_t handle, const void* caller);
void driver_unmapped(uint64_t address, uint64_t size_bytes);

}  // namespace gpumemprof::probe
