"""Patterns over the records of a key: their syntax tree, the verbs and the text that build it, and its checks."""
