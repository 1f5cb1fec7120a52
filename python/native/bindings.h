// What the files of this folder add to the module, each in its own.
#pragma once

#include <nanobind/nanobind.h>

namespace gpumemprof::python {

/// `accelerators` and `device_memory`: the accelerators of this machine.
void bind_accelerators(nanobind::module_& module);
/// `estimate_config`: the closed form over a configuration.
void bind_estimate(nanobind::module_& module);
/// `read_run`, `cache_place` and the class LakeRun: a run as the tables of a lake.
void bind_lake(nanobind::module_& module);
/// `analyze_series` and `forecast_limit`: keys are the members' names; an absent value is None.
void bind_series(nanobind::module_& module);
/// `read_telemetry`, `telemetry_record`, `TelemetryWriter`, `Alarm` and `host_memory`.
void bind_telemetry(nanobind::module_& module);
/// `load_trace` and the class Trace: a snapshot or a recording; gpumemprof/trace.py is their face.
void bind_trace(nanobind::module_& module);

}  // namespace gpumemprof::python
