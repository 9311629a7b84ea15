"""Sagas: long-running transactions as steps with compensations."""
