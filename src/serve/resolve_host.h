// The addresses of a host, by a deadline: the system's own look-up has none.
#pragma once

#include <netdb.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/error.h"

namespace gpumemprof {

using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

/// getaddrinfo(), or what a test has instead.
using HostLookup =
    std::function<int(const char* host, const char* port, const addrinfo* hints, addrinfo** out)>;

/// Numeric addresses at once; names in a thread of their own, which is left to itself where it has
/// not come back in `timeout_ns`. Errors: kSystem with the reason alone.
Result<AddressList> resolve_host(const std::string& host, const std::string& port,
                                 int64_t timeout_ns, HostLookup lookup = getaddrinfo);

}  // namespace gpumemprof
