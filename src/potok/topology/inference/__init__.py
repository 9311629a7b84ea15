"""What is known of each step before anything runs."""
