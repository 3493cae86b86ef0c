"""Where rows go: one class in one file each."""
