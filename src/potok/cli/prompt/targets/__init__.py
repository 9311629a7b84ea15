"""Where statements are executed: in this process, or on a server."""
