// Virtual memory management: physical memory by handles, addresses, mappings. CUDA and HIP have the
// same functions under two beginnings.
#include "driver_proxy/watch.h"

using namespace gpumemprof::driver_proxy;
using namespace gpumemprof::probe;

namespace {

/// The begin of CUmemAllocationProp: kind, kind of handle, where: {type, number}; type 1 is a
/// device.
struct Prop {
  int type, handles, place, number;
};
constexpr int kOnDevice = 1;

}  // namespace

DRIVER_EXPORT Result DRIVER_FUNCTION(MemCreate)(Pointer* handle, size_t bytes, const Prop* prop,
                                                unsigned long long flags) {
  WATCH();
  const Result code = CALL_REAL(DRIVER_FUNCTION(MemCreate), handle, bytes, prop, flags);
  if (!watch.is_on() || !prop || prop->place != kOnDevice) return code;  // else it is the host's
  const KeepErrno keep;
  if (code == kOutOfMemory) watch->refused(kDriverHandles, prop->number, bytes, watch.caller());
  if (code == kSuccess) watch->created(*handle, prop->number, bytes, true, watch.caller());
  return code;
}

DRIVER_EXPORT Result DRIVER_FUNCTION(MemImportFromShareableHandle)(Pointer* handle, void* from,
                                                                   int type) {
  WATCH();
  const Result code = CALL_REAL(DRIVER_FUNCTION(MemImportFromShareableHandle), handle, from, type);
  if (!watch.is_on() || code != kSuccess) return code;
  const KeepErrno keep;
  Prop prop[8] = {};  // with room for what newer drivers write
  const bool is_known =
      ASK_REAL(Result(Prop*, Pointer), DRIVER_FUNCTION(MemGetAllocationPropertiesFromHandle), prop,
               *handle) == kSuccess;
  // Its mappings have its size.
  watch->created(*handle, is_known ? prop[0].number : device_now(), 0, false, watch.caller());
  return code;
}

DRIVER_EXPORT Result DRIVER_FUNCTION(MemRetainAllocationHandle)(Pointer* handle, void* address) {
  WATCH();
  const Result code = CALL_REAL(DRIVER_FUNCTION(MemRetainAllocationHandle), handle, address);
  if (watch.is_on() && code == kSuccess) {
    const KeepErrno keep;
    watch->retained(*handle);
  }
  return code;
}

/// Told before the call, since another thread may get the same number right after it. A handle that
/// the driver does not take back was none: nothing is known of it here either.
DRIVER_EXPORT Result DRIVER_FUNCTION(MemRelease)(Pointer handle) {
  WATCH();
  if (watch.is_on()) {
    const KeepErrno keep;
    watch->released(handle);
  }
  return CALL_REAL(DRIVER_FUNCTION(MemRelease), handle);
}

DRIVER_EXPORT Result DRIVER_FUNCTION(MemMap)(Pointer address, size_t bytes, size_t offset,
                                             Pointer handle, unsigned long long flags) {
  WATCH();
  const Result code = CALL_REAL(DRIVER_FUNCTION(MemMap), address, bytes, offset, handle, flags);
  if (watch.is_on() && code == kSuccess) {
    const KeepErrno keep;
    watch->mapped(address, bytes, handle, watch.caller());
  }
  return code;
}

/// Recorded after the call: no other thread maps these addresses before this one returns.
DRIVER_EXPORT Result DRIVER_FUNCTION(MemUnmap)(Pointer address, size_t bytes) {
  WATCH();
  const Result code = CALL_REAL(DRIVER_FUNCTION(MemUnmap), address, bytes);
  if (watch.is_on() && code == kSuccess) {
    const KeepErrno keep;
    watch->unmapped(address, bytes);
  }
  return code;
}

DRIVER_CALL(DRIVER_FUNCTION(MemAddressReserve),
            (Pointer* out, size_t bytes, size_t alignment, Pointer hint, unsigned long long flags),
            (out, bytes, alignment, hint, flags),
            if (code == kSuccess) watch.took(code, kDriverAddressSpace, out, bytes))

DRIVER_FREE(DRIVER_FUNCTION(MemAddressFree), (Pointer address, size_t bytes), (address, bytes),
            1u << kDriverAddressSpace, address)
