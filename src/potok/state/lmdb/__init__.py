"""Cells in LMDB: files next to the log, read by many processes while one writes."""
