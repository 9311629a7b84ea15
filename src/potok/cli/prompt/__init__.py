"""The SQL prompt: input, execution in this process or on a server, and display of results."""
