"""What the pytest plugin does. Nothing here is imported unless pytest loads the plugin."""
