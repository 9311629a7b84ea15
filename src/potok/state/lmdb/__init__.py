"""Cells in LMDB: files beside the log, which many processes read while one writes."""
