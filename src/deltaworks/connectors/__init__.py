"""What the sources and sinks of one system share."""
