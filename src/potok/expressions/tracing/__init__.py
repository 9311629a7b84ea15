"""Turn lambdas into expressions."""
