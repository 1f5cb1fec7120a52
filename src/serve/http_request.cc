#include "serve/http_request.h"

#include <algorithm>
#include <charconv>

namespace gpumemprof {
namespace {

bool is_token_char(char c) {
  constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         kMarks.find(c) != kMarks.npos;
}

/// RFC 9110, field-content: visible characters, blanks, tabs, and bytes above 127.
bool is_field_value(std::string_view text) {
  return std::ranges::all_of(text, [](char c) {
    return c == '\t' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
  });
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c | 0x20);
  }
  return out;
}

int parse_request_line(std::string_view line, HttpRequest* request) {
  const size_t first = line.find(' '), last = line.rfind(' ');
  if (first == line.npos || first == last) return 400;
  const std::string_view method = line.substr(0, first);
  const std::string_view target = line.substr(first + 1, last - first - 1);
  const std::string_view version = line.substr(last + 1);
  if (!is_token(method)) return 400;
  if (target.size() > kMostTargetBytes) return 414;
  if (target.empty() || target.front() != '/') return 400;
  if (!std::ranges::all_of(target, [](char c) { return c > 0x20 && c < 0x7f && c != '#'; }))
    return 400;
  if (version != "HTTP/1.1" && version != "HTTP/1.0")
    return version.starts_with("HTTP/") ? 505 : 400;
  if (method != "GET" && method != "HEAD" && method != "PUT") return 405;
  const size_t question = target.find('?');
  request->method = method;
  request->path = target.substr(0, question);
  if (question != target.npos) request->query = target.substr(question + 1);
  request->is_http_1_0 = version == "HTTP/1.0";
  return 200;
}

/// How often a field came that may come once.
struct FieldCounts {
  int hosts = 0, authorizations = 0, lengths = 0;
};

int parse_length(std::string_view value, HttpRequest* request, FieldCounts* counts) {
  if (request->method != "PUT") return value == "0" ? 200 : 413;
  const auto [end, error] =
      std::from_chars(value.data(), value.data() + value.size(), request->body_bytes);
  const bool is_number = error == std::errc() && end == value.data() + value.size();
  return is_number && ++counts->lengths == 1 ? 200 : 400;
}

int parse_field(std::string_view line, HttpRequest* request, FieldCounts* counts) {
  const size_t colon = line.find(':');
  if (colon == line.npos || !is_token(line.substr(0, colon))) return 400;
  const std::string_view value = trimmed(line.substr(colon + 1));
  if (!is_field_value(value)) return 400;
  const std::string name = lower(line.substr(0, colon));
  if (name == "transfer-encoding" || name == "upgrade") return name == "upgrade" ? 200 : 413;
  if (name == "content-length") return parse_length(value, request, counts);
  if (name == "host") {
    request->host = value;
    return ++counts->hosts > 1 ? 400 : 200;
  }
  if (name == "authorization") {
    request->authorization = value;
    return ++counts->authorizations > 1 ? 400 : 200;
  }
  if (name == "accept") {
    if (!request->accept.empty()) request->accept += ", ";
    request->accept += value;
  }
  return 200;
}

}  // namespace

bool is_token(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, is_token_char);
}

ParsedRequest parse_request(std::string_view bytes) {
  ParsedRequest out;
  const std::string_view head = bytes.substr(0, kMostHeadBytes);
  const size_t end = head.find("\r\n\r\n");
  // A line end alone is none, and a zero is nowhere: said at once instead of waiting for more.
  const std::string_view seen = head.substr(0, end == head.npos ? head.size() : end + 2);
  for (size_t i = 0; i < seen.size(); ++i) {
    const bool bare = (seen[i] == '\n' && (i == 0 || seen[i - 1] != '\r')) ||
                      (seen[i] == '\r' && i + 1 < seen.size() && seen[i + 1] != '\n');
    if (bare || seen[i] == '\0') {
      out.status = 400;
      return out;
    }
  }
  if (end == head.npos) {
    if (bytes.size() >= kMostHeadBytes) out.status = 431;
    return out;
  }
  size_t at = head.find("\r\n");
  out.status = parse_request_line(head.substr(0, at), &out.request);
  FieldCounts counts;
  size_t fields = 0;
  while (out.status == 200 && at < end) {
    const size_t begin = at + 2;
    at = std::min(head.find("\r\n", begin), end);
    if (++fields > kMostHeaders)
      out.status = 431;
    else
      out.status = parse_field(head.substr(begin, at - begin), &out.request, &counts);
  }
  if (out.status == 200 && counts.hosts == 0 && !out.request.is_http_1_0) out.status = 400;
  if (out.status == 200 && counts.lengths == 0 && out.request.method == "PUT") out.status = 411;
  out.head_bytes = end + 4;
  return out;
}

}  // namespace gpumemprof
