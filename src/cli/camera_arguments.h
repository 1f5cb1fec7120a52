// Options shared by `top` and `serve`: folders and thresholds.
#pragma once

#include <CLI/CLI.hpp>

#include "picture/camera.h"

namespace gpumemprof {

/// FOLDER… ; `options` lives as long as the parser.
void add_camera_folders(CLI::App* command, CameraOptions* options);
/// --warning-threshold and --critical-threshold.
void add_camera_thresholds(CLI::App* command, CameraOptions* options);

}  // namespace gpumemprof
