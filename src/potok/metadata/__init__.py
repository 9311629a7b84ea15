"""The metadata store: small values under keys, changed by compare-and-set."""
