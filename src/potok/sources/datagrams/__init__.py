"""Datagrams: UDP, and StatsD metrics over it, with tables of them."""
