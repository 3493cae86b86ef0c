"""The only code that knows Delta and Spark."""
