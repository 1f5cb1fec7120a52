"""TelemetryEventV2: one measurement of one process and device, and the files in which tools exchange it."""

from ._telemetry.event import FIELDS_V2 as FIELDS_V2
from ._telemetry.event import TelemetryEventV2 as TelemetryEventV2
from ._telemetry.event import telemetry_event_to_dict as telemetry_event_to_dict
from ._telemetry.event import unknown_fields as unknown_fields
from ._telemetry.event import validate_telemetry_record as validate_telemetry_record
from ._telemetry.files import TelemetryWriter as TelemetryWriter
from ._telemetry.files import load_telemetry_events as load_telemetry_events
from ._telemetry.files import telemetry_event_from_record as telemetry_event_from_record
from ._telemetry.files import write_events as write_events
from ._tracking.job_rank import resolve_distributed_identity as resolve_distributed_identity
