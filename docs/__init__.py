"""The pages of the documentation, and the tools that draw, generate and build them."""
