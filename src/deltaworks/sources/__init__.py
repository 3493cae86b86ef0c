"""Where rows come from: one class in one file each."""
