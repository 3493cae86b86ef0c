"""delta-rs answers at once, in process and with no JVM."""
