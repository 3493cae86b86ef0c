"""Delta tables through Spark: write, plan, undo, restore, maintain."""
