"""Samples in the background: the tracker, its alerts, the watchdog."""
