"""A plan evaluated once: frames, checks, row counts, limits."""
