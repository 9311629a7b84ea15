"""Datagrams: UDP unicast and multicast."""
