// What comes over the wire to `gpumemprof serve`: byte by byte and at once it must mean the same,
// and what is taken keeps to what the parser promises.
#include <stdint.h>
#include <stdlib.h>

#include <string_view>

#include "base/query.h"
#include "serve/http_request.h"
#include "serve/listen_address.h"
#include "work_limit.h"

using namespace gpumemprof;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const WorkLimit limit(size);
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const ParsedRequest whole = parse_request(bytes);
  if (whole.status == 0 && size >= kMostHeadBytes) abort();
  if (whole.status == 200) {
    const HttpRequest& request = whole.request;
    if (request.method != "GET" && request.method != "HEAD") abort();
    if (request.path.empty() || request.path[0] != '/') abort();
    if (request.path.size() + request.query.size() > kMostTargetBytes) abort();
    for (const std::string* text :
         {&request.path, &request.query, &request.host, &request.authorization, &request.accept}) {
      if (text->find_first_of(std::string_view("\r\n\0", 3)) != text->npos) abort();
    }
    (void)is_local_host_field(request.host);
    const auto token = query_value(request.query, "token");
    if (token && token->size() > request.query.size()) abort();
  }
  // A server that reads in pieces answers as soon as the head is there, and never something else.
  for (size_t part = 1; part < size && part <= kMostHeadBytes; part += 1 + size / 64) {
    const ParsedRequest early = parse_request(bytes.substr(0, part));
    if (early.status == 200 && (whole.status != 200 || early.request.path != whole.request.path)) {
      abort();
    }
  }
  (void)parse_listen_address(bytes);
  return 0;
}
