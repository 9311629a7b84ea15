"""Java's date patterns, regular expressions and number formats."""
