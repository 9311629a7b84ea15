"""A fault in each row: what breaks, what Potok does, and whether the answer is the one that plain Python gives."""
