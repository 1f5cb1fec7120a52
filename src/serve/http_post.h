// One POST over HTTP/1.1: for collectors on this machine or in a network that is trusted. No TLS.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace gpumemprof {

struct HttpTarget {
  std::string host, port, path;  ///< of "[::1]" the host is "::1"
  std::string authority;         ///< as the field Host has it
};

/// "http://127.0.0.1:4318/v1/metrics". Errors: kUsage, one line; for https too, which is not
/// spoken.
Result<HttpTarget> parse_http_url(std::string_view url);

using HttpFields = std::vector<std::pair<std::string, std::string>>;

/// "Name=value", as a field of a request. Errors: kUsage where it is none, or one that we send.
Result<std::pair<std::string, std::string>> parse_http_field(std::string_view text);

struct PostAnswer {
  int status = 0;
  std::string body;            ///< cut at 64 KiB
  int64_t retry_after_ns = 0;  ///< as the server asks; 0 where it does not
};

/// Waits for the answer, `timeout_ns` for all of it, looking up the name included; of an answer
/// that does not end by then the head counts. Errors: kSystem with the reason.
Result<PostAnswer> http_post(const HttpTarget& target, const HttpFields& fields,
                             std::string_view body, int64_t timeout_ns);

/// The answer, once all of it has come; exposed for tests and fuzzing. Errors: kBadInput.
Result<PostAnswer> parse_http_answer(std::string_view bytes);

}  // namespace gpumemprof
