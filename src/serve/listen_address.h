// Where a server listens.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace gpumemprof {

struct ListenAddress {
  std::string ip;  ///< "127.0.0.1", "::1", "0.0.0.0"
  uint16_t port = 0;
  bool is_v6 = false;
  bool is_loopback = false;  ///< nobody outside this machine can reach it
};

/// "127.0.0.1:9810", "[::1]:9810", "localhost:9810", ":9810" (every address of the machine), "9810"
/// (loopback). Port 0 is any free one. Names are not looked up. Errors: kUsage.
Result<ListenAddress> parse_listen_address(std::string_view text);

/// "127.0.0.1:9810" as a browser has it in the field Host; with brackets for version 6.
std::string address_text(const ListenAddress& address);

/// Whether the field Host of a request is an IP address or "localhost", with or without a port: a
/// page of another site that had its name point here (DNS rebinding) cannot say so.
bool is_local_host_field(std::string_view host);

}  // namespace gpumemprof
