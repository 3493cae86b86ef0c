"""Who listens to a run."""
