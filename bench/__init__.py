"""Side-by-side benchmarks: ours against the script a good engineer would write."""
