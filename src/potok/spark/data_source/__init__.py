"""The data source `potok` as Spark reads it: `spark.read.format("potok")`."""
