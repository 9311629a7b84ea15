"""What Potok costs, as ratios against what a user would write by hand, measured in one run on one machine."""
