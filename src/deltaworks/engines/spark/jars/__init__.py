"""The jars of Spark sessions: pinned, downloaded, checked."""
