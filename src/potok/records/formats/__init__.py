"""The formats in which values and keys lie in a log, one module each; `format.format_named` finds one by name."""
