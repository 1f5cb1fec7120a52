#include "driver_proxy/watch.h"

#include <errno.h>

namespace gpumemprof::driver_proxy {
namespace {

/// The driver may call its own exported functions, which come to us: they are not the program's.
thread_local uint32_t t_depth __attribute__((tls_model("initial-exec")));

bool read_used(uint64_t, uint64_t* bytes) { return used_now(bytes); }

}  // namespace

const DriverLink* driver_link() {
  static constinit const DriverLink* known = nullptr;
  const DriverLink* link = __atomic_load_n(&known, __ATOMIC_RELAXED);
  if (link || !gpumemprof_driver_link) return link;
  link = gpumemprof_driver_link(probe::kDriverLinkVersion);
  __atomic_store_n(&known, link, __ATOMIC_RELAXED);
  return link;
}

Watch::Watch(const void* caller) : caller_(caller) {
  if (t_depth++ != 0) return;
  const DriverLink* link = driver_link();
  if (link && link->is_wanted()) link_ = link;
}

Watch::~Watch() { --t_depth; }

void Watch::took(Result code, DriverKind kind, const Pointer* key, uint64_t size_bytes,
                 int device) {
  if (!link_) return;
  const KeepErrno keep;
  if (code == kOutOfMemory) link_->refused(kind, device, size_bytes, caller_);
  if (code == kSuccess) link_->took(kind, device, *key, size_bytes, caller_);
}

void Watch::took(Result code, DriverKind kind, const Pointer* key, uint64_t size_bytes) {
  if (link_ && (code == kSuccess || code == kOutOfMemory)) {
    took(code, kind, key, size_bytes, device_now());
  }
}

void Watch::gives(uint32_t kinds, Pointer key) {
  if (!link_) return;
  const KeepErrno keep;
  gone_ = link_->gave(kinds, key);
  gone_key_ = key;
}

void Watch::gave(Result code) {
  if (!link_ || code == kSuccess || gone_.kind == probe::kDriverKinds) return;
  const KeepErrno keep;
  link_->took(gone_.kind, gone_.device, gone_key_, gone_.size_bytes, gone_.caller);
}

void Watch::level(DriverKind kind, int device, uint64_t key, bool (*read)(uint64_t, uint64_t*)) {
  if (!link_) return;
  const KeepErrno keep;
  const BesideCapture beside;
  link_->level(kind, device, key, read, caller_);
}

/// The key of what a device has in use, the same one for good: that is one block a device. Where
/// its place is not told, a number that no place has.
static uint64_t used_key(int device) {
  constexpr int kMostDevices = 64;
  static uint64_t known[kMostDevices];
  const uint64_t unknown = 0x200 + static_cast<uint64_t>(device);
  if (device < 0 || device >= kMostDevices) return unknown;
  uint64_t key = __atomic_load_n(&known[device], __ATOMIC_RELAXED);
  if (key) return key;
  const uint64_t place = ask_place(device);
  key = place ? place : unknown;
  __atomic_store_n(&known[device], key, __ATOMIC_RELAXED);
  return key;
}

void Watch::level_used() {
  const int device = link_ ? device_now() : -1;
  if (device >= 0) level(probe::kDriverDeviceUsed, device, used_key(device), read_used);
}

void took_module(Watch& watch, const Bracket& bracket, Result code, const Pointer* module) {
  if (!watch.is_on() || code != kSuccess) return;
  const KeepErrno keep;
  uint64_t bytes = 0;
  if (bracket.growth(&bytes) && bytes) watch.took(code, probe::kDriverModules, module, bytes);
  watch.level_used();
}

KeepErrno::KeepErrno() : saved_(errno) {}
KeepErrno::~KeepErrno() { errno = saved_; }

}  // namespace gpumemprof::driver_proxy
