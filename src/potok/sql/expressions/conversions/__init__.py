"""Convert values between types, and to and from text."""
