"""Build the documentation site: `make docs`."""
