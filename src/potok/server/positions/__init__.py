"""Read your own writes over HTTP: the position of a write, and reads that wait for it."""
