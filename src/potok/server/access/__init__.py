"""Authentication, limits and the threads that execute statements."""
