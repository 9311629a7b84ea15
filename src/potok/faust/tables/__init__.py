"""Tables of an app, with and without windows."""
