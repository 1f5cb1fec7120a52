// Reads the head of an HTTP/1 request from hostile bytes. Strict: what a browser, curl and
// Prometheus never send is refused, so that no two readers of one request can disagree.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace gpumemprof {

inline constexpr size_t kMostHeadBytes = 8192;    ///< request line and header fields together
inline constexpr size_t kMostTargetBytes = 2048;  ///< of the request line
inline constexpr size_t kMostHeaders = 64;

struct HttpRequest {
  std::string method;  ///< "GET", "HEAD" or "PUT"
  std::string path;    ///< as sent, without the query; nothing in it is decoded
  std::string query;   ///< as sent, without the "?"
  /// Values of the fields that anybody here asks for; empty where the request has none.
  std::string host, authorization, accept;
  bool is_http_1_0 = false;
  uint64_t body_bytes = 0;  ///< of PUT: what follows the head
};

struct ParsedRequest {
  /// 0: the head is not complete yet; 200: `request` holds; else the status to answer with.
  int status = 0;
  HttpRequest request;
  size_t head_bytes = 0;  ///< where its body begins
};

/// A token of RFC 9110: a method, the name of a field.
bool is_token(std::string_view text);

/// Looks at all bytes that have come so far. Never answers 0 for kMostHeadBytes or more.
/// Statuses: 400 for what is no request, 405 for another method, 411 for PUT without a length, 413
/// for another with a body, 414 for a long target, 431 for a long head, 505 for another version.
ParsedRequest parse_request(std::string_view bytes);

}  // namespace gpumemprof
