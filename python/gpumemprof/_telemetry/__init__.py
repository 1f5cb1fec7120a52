"""Telemetry: the event, and the files of the core's reader and writer as events."""
