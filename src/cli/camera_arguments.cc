#include "cli/camera_arguments.h"

namespace gpumemprof {

void add_camera_folders(CLI::App* command, CameraOptions* options) {
  command
      ->add_option("folders", options->folders,
                   "also follow recordings in these folders, such as those of other containers")
      ->type_name("FOLDER")
      ->check(CLI::ExistingDirectory);
}

void add_camera_thresholds(CLI::App* command, CameraOptions* options) {
  command
      ->add_option("--warning-threshold", options->alerts.warning_percent,
                   "alert when more than this percentage of a memory is in use")
      ->type_name("%")
      ->check(CLI::Range(0.1, 100.0))
      ->capture_default_str();
  command
      ->add_option("--critical-threshold", options->alerts.critical_percent,
                   "critical alert above this percentage")
      ->type_name("%")
      ->check(CLI::Range(0.1, 100.0))
      ->capture_default_str();
}

}  // namespace gpumemprof
