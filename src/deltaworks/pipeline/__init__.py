"""From a pipeline file to a plan, with no engine."""
