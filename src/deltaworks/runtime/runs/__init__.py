"""One run around its batches: runner, schedule, plan, preview."""
