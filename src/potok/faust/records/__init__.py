"""Record classes, their fields and codecs."""
