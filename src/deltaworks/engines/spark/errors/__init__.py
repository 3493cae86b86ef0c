"""Errors of Spark and the JVM, translated."""
