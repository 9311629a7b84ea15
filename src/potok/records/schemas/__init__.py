"""Schemas from annotations, Arrow types and DDL text."""
