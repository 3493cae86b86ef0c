"""Scripts as a good engineer writes them, with Spark's defaults; each runs by itself."""
