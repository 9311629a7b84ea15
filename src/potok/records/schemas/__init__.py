"""Schemas and where they come from: annotations, Arrow types, DDL text."""
