"""The demo: a shop whose orders never end."""
