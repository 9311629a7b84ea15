"""What each step means, told as data: records with times, and what must come of them."""
