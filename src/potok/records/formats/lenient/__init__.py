"""JSON and DELIMITED with lenient conversion: a value of another type is converted to the declared one if it can be."""
