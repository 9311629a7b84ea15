"""Check an installation: its settings, servers, permissions and clocks."""
