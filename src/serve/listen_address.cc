#include "serve/listen_address.h"

#include <arpa/inet.h>

#include <charconv>

namespace gpumemprof {
namespace {

bool parse_port(std::string_view text, uint16_t* port) {
  if (text.empty() || text.size() > 5) return false;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *port);
  return error == std::errc() && end == text.data() + text.size();
}

bool is_v4(const std::string& text) {
  in_addr address;
  return inet_pton(AF_INET, text.c_str(), &address) == 1;
}

bool is_v6(const std::string& text) {
  in6_addr address;
  return inet_pton(AF_INET6, text.c_str(), &address) == 1;
}

/// Splits "HOST:PORT" and "[HOST]:PORT"; `port` stays empty where there is none, and so does `host`
/// where something else stands behind the bracket.
void split(std::string_view text, std::string* host, std::string_view* port) {
  if (text.starts_with('[')) {
    const size_t close = text.find(']');
    if (close == text.npos) return;
    const std::string_view rest = text.substr(close + 1);
    if (!rest.empty() && rest.front() != ':') return;
    *host = text.substr(1, close - 1);
    if (!rest.empty()) *port = rest.substr(1);
    return;
  }
  const size_t colon = text.rfind(':');
  *host = text.substr(0, colon);
  if (colon != text.npos) *port = text.substr(colon + 1);
}

}  // namespace

Result<ListenAddress> parse_listen_address(std::string_view text) {
  ListenAddress out;
  std::string_view port;
  bool is_known = true;
  if (parse_port(text, &out.port)) {
    out.ip = "127.0.0.1";
  } else {
    split(text, &out.ip, &port);
    if (text.starts_with(':') && text.rfind(':') == 0) out.ip = "0.0.0.0";
    if (out.ip == "localhost") out.ip = "127.0.0.1";
    out.is_v6 = is_v6(out.ip);
    is_known = parse_port(port, &out.port) && out.is_v6 == text.starts_with('[') &&
               (out.is_v6 || is_v4(out.ip));
  }
  if (!is_known) {
    return fail(ErrorCode::kUsage,
                "--listen '" + std::string(text) +
                    "' is not an address: write IP:PORT, [IPv6]:PORT, :PORT or PORT");
  }
  out.is_loopback = out.is_v6 ? out.ip == "::1" : out.ip.starts_with("127.");
  return out;
}

std::string address_text(const ListenAddress& address) {
  const std::string ip = address.is_v6 ? '[' + address.ip + ']' : address.ip;
  return ip + ':' + std::to_string(address.port);
}

bool is_local_host_field(std::string_view text) {
  std::string host;
  std::string_view port;
  split(text, &host, &port);
  uint16_t number = 0;
  if (!port.empty() && !parse_port(port, &number)) return false;
  return text.starts_with('[') ? is_v6(host) : host == "localhost" || is_v4(host);
}

}  // namespace gpumemprof
