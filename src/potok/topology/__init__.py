"""The topology: frozen nodes, each with its location in the user's program."""
