"""What must hold of rows: one class in one file each."""
