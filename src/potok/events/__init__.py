"""Events: declared classes, their versions and their envelopes."""
