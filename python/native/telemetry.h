// Telemetry files, alarms and the host's memory for Python.
#pragma once

#include <nanobind/nanobind.h>

namespace gpumemprof::python {

/// Adds `read_telemetry`, `telemetry_record`, `TelemetryWriter`, `Alarm` and `host_memory`.
void bind_telemetry(nanobind::module_& module);

}  // namespace gpumemprof::python
