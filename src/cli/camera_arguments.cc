#include "cli/options.h"

namespace gpumemprof {

void add_camera_folders(CLI::App* command, CameraOptions* options) {
  add_value(command, "folders", "FOLDER", options->folders,
            "also follow recordings in these folders, such as those of other containers")
      ->check(CLI::ExistingDirectory);
}

void add_camera_thresholds(CLI::App* command, CameraOptions* options) {
  add_defaulted(command, "--warning-threshold", "%", options->alerts.warning_percent,
                "alert when more than this percentage of a memory is in use")
      ->check(CLI::Range(0.1, 100.0));
  add_defaulted(command, "--critical-threshold", "%", options->alerts.critical_percent,
                "critical alert above this percentage")
      ->check(CLI::Range(0.1, 100.0));
}

}  // namespace gpumemprof
