"""Personal data in events: encrypted with a key of its own for each subject, which is deleted to forget them."""
