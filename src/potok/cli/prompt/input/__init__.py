"""Typing statements: keyboard, completion, highlighting, and checks of scripts."""
