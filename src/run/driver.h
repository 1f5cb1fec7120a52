// The CUDA driver of this machine, and what is needed so that recorded programs reach it through
// us.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"

namespace gpumemprof {

inline constexpr const char* kDriverProxyLibrary = "libgpumemprof_cuda.so";

/// Where the loader finds libcuda.so.1, absolute; empty where there is none, and never a stand-in
/// of ours. A process of its own asks, so that nothing of the driver comes into this one.
std::string find_driver();

/// The library that stands in for the driver, which lies beside the probe; empty where it does not.
std::string driver_proxy_beside(const std::string& probe);

/// Libraries beside the probe that record other run times than CUDA's, of those that are on this
/// machine: HIP's and Level Zero's. Absolute paths; a process of its own asks, as find_driver().
std::vector<std::string> runtime_proxies_beside(const std::string& probe);

/// A private folder (0700) that lives as long as this object, with four links: the stand-in under
/// its own name, which is preloaded, and as libcuda.so and libcuda.so.1 for those who open these;
/// the real library as "driver", for processes in whose environment it is not named any more.
/// Where the driver exports functions (cu…) that the stand-in lacks, to which programs may be
/// linked, the first is a copy that has them.
class DriverLinks {
 public:
  /// Errors: kSystem where the folder cannot be made, those of write_stand_in_with().
  static Result<DriverLinks> make(const std::string& proxy, const std::string& driver);
  DriverLinks(DriverLinks&& other) noexcept;
  DriverLinks& operator=(DriverLinks&&) = delete;
  ~DriverLinks();
  const std::string& folder() const { return folder_; }
  const std::string& driver() const { return driver_; }
  /// Leaves it behind: a process that still runs may start others.
  void keep() { is_kept_ = true; }

 private:
  DriverLinks() = default;
  std::string folder_, driver_;
  bool is_kept_ = false;
};

}  // namespace gpumemprof
