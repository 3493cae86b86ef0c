"""Files read as Arrow batches, without Spark: a reader for each format."""
