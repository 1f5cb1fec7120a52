"""What runs in a recorded program. Nothing here may be seen by it."""
