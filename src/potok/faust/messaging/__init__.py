"""Topics, channels, events, and the replies of agents."""
