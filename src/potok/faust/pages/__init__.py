"""Web pages of an app."""
