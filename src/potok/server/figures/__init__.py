"""Figures of queries: rates, lag, topology, samples."""
