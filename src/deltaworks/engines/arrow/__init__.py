"""Files read by Arrow, without a JVM."""
