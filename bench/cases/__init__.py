"""One case per file: how to prepare it, how we do it, how a plain script does it."""
