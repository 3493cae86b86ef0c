"""One batch from its decision to its commit."""
