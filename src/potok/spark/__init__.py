"""Everything that uses pyspark: context, executor, workers, Kafka connector."""
