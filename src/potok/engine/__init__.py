"""Runs a topology on Spark. The only room that imports pyspark."""
