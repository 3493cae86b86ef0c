"""Rows of any table by delta-rs, where it reads what Spark reads."""
