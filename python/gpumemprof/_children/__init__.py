"""What runs in child processes of the command."""
