"""Read aggregates and the instances of sagas."""
