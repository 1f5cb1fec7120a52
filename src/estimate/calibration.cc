#include "estimate/calibration.h"

#include <nlohmann/json.hpp>

namespace gpumemprof {
namespace {

using Json = nlohmann::json;
constexpr uint64_t kMostMeasuredBytes = uint64_t{1} << 50;
constexpr size_t kMostTextBytes = 256;
constexpr uint64_t kMostMultiprocessors = 4096;

Status read_bytes(const Json& root, const char* key, uint64_t* value) {
  const auto found = root.find(key);
  if (found == root.end() || !found->is_number_unsigned() || *found > kMostMeasuredBytes)
    return fail(ErrorCode::kBadInput, std::string("its ") + key + " is not a number of bytes");
  *value = found->get<uint64_t>();
  return {};
}

Status read_text(const Json& root, const char* key, std::string* value) {
  const auto found = root.find(key);
  if (found == root.end() || !found->is_string() ||
      found->get_ref<const std::string&>().size() > kMostTextBytes)
    return fail(ErrorCode::kBadInput, std::string("its ") + key + " is not a name");
  *value = found->get<std::string>();
  return {};
}

}  // namespace

Result<Calibration> parse_calibration(std::string_view text) {
  Json root;
  try {
    root = Json::parse(text);
  } catch (const Json::parse_error& error) {
    return fail_at(error.byte, "is not JSON");
  } catch (const Json::out_of_range&) {  // 1e400: the parser says no place
    return fail(ErrorCode::kBadInput, "has a number that is too large");
  }
  const std::string schema =
      root.is_object() && root.contains("schema") && root["schema"].is_string()
          ? root["schema"].get<std::string>()
          : "";
  if (!schema.starts_with("gpumemprof.calibration/"))
    return fail(ErrorCode::kBadInput, "is not a file of gpumemprof calibrate");
  if (schema != "gpumemprof.calibration/1")
    return fail(ErrorCode::kUnsupported, "was written by a later version of gpumemprof");
  Calibration out;
  for (const auto& [key, value] : {std::pair{"device", &out.device},
                                   {"driver", &out.driver},
                                   {"torch", &out.torch},
                                   {"cuda", &out.cuda},
                                   {"basis", &out.basis}}) {
    if (auto done = read_text(root, key, value); !done) return std::unexpected(done.error());
  }
  for (const auto& [key, value] : {std::pair{"context_bytes", &out.context_bytes},
                                   {"cublas_bytes", &out.cublas_bytes},
                                   {"cudnn_bytes", &out.cudnn_bytes},
                                   {"product_workspace_bytes", &out.product_workspace_bytes}}) {
    if (auto done = read_bytes(root, key, value); !done) return std::unexpected(done.error());
  }
  if (root.contains("multiprocessors")) {
    const Json& count = root["multiprocessors"];
    if (!count.is_number_unsigned() || count == 0 || count > kMostMultiprocessors)
      return fail(ErrorCode::kBadInput, "its multiprocessors is not a number");
    out.multiprocessors = count.get<uint64_t>();
  }
  return out;
}

std::string calibration_source(const Calibration& calibration) {
  return "measured by calibrate on " + calibration.device + ", PyTorch " + calibration.torch +
         ", CUDA " + calibration.cuda;
}

}  // namespace gpumemprof
