"""Bytes on disk and in buckets: paths, listings, locks; no Spark, no Delta."""
