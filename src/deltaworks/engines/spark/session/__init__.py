"""The Spark session: start, settings, jobs, Spark Connect."""
