#include "cli/estimate.h"

#include "base/file.h"

namespace gpumemprof {

Result<Calibration> read_calibration(const std::string& path) {
  auto text = read_small_file(path, kMaxCalibrationBytes);
  auto found = text ? parse_calibration(*text) : std::unexpected(text.error());
  if (found) return found;
  Error error = found.error();
  error.message = "--calibration " + path + ": " + error.message;
  return std::unexpected(std::move(error));
}

}  // namespace gpumemprof
