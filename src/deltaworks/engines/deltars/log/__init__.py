"""A table's log: its files, commits, checkpoints and soundness."""
