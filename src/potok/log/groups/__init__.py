"""Consumer groups: membership and assignment."""
