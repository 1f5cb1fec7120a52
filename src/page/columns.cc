#include "page/columns.h"

#include <algorithm>
#include <bit>

namespace gpumemprof {
namespace {

static_assert(std::endian::native == std::endian::little);
constexpr uint64_t kMostExact = uint64_t{1} << 53;

size_t padded(size_t bytes) { return (bytes + 7) / 8 * 8; }

}  // namespace

std::string json_text(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

void Columns::add_bytes(std::string_view name, const char* type, size_t length, const void* data,
                        size_t bytes) {
  columns_[std::string(name)] = {{"type", type}, {"length", length}, {"offset", arrays_.size()}};
  if (bytes != 0) arrays_.append(static_cast<const char*>(data), bytes);
  arrays_.resize(padded(arrays_.size()));
}

void Columns::add(std::string_view name, std::span<const uint8_t> values) {
  add_bytes(name, "u8", values.size(), values.data(), values.size_bytes());
}

void Columns::add(std::string_view name, std::span<const uint16_t> values) {
  add_bytes(name, "u16", values.size(), values.data(), values.size_bytes());
}

void Columns::add(std::string_view name, std::span<const uint32_t> values) {
  add_bytes(name, "u32", values.size(), values.data(), values.size_bytes());
}

void Columns::add(std::string_view name, std::span<const uint64_t> values) {
  std::vector<double> exact(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    clamped_ += values[i] > kMostExact;
    exact[i] = static_cast<double>(std::min(values[i], kMostExact));
  }
  add_bytes(name, "f64", exact.size(), exact.data(), exact.size() * sizeof(double));
}

std::string Columns::finish(nlohmann::ordered_json header) const {
  if (clamped_ != 0) header["clamped"] = clamped_;
  // The offsets depend on the header's length, which depends on them: they are made room for.
  nlohmann::ordered_json columns = columns_;
  std::string text;
  size_t begin = 0;
  for (;;) {
    for (auto& [name, column] : columns.items()) {
      column["offset"] = columns_[name]["offset"].get<size_t>() + begin;
    }
    header["columns"] = columns;
    text = json_text(header);
    const size_t needed = padded(8 + text.size());
    if (needed <= begin) break;
    begin = needed;
  }
  std::string out = "GMPC";
  const auto length = static_cast<uint32_t>(text.size());
  out.append(reinterpret_cast<const char*>(&length), sizeof length);
  out += text;
  out.resize(begin);
  out += arrays_;
  return out;
}

}  // namespace gpumemprof
