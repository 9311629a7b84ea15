"""The worker process of an app: commands, services, signals."""
