"""What all operators share: chunks, calls of user functions, dead letters, task reports."""
