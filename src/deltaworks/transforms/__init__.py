"""What is done to rows: one class in one file each."""
