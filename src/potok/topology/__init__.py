"""The topology: frozen nodes that know the place in the user's program they come from."""
