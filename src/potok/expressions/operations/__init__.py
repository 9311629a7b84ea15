"""The operations that a `Call` may name: their type rules and their columnar form."""
