"""Streams into Delta tables: numbered epochs, each landing once, without a JVM."""
