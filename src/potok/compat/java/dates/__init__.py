"""Dates and times by the patterns of Java's DateTimeFormatter, as ksqlDB's functions take them."""
