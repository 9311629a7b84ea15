"""Start the JVM of Spark, and explain why it did not start or has ended."""
