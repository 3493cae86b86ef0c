"""Readers: files, databases, Kafka, increments of Delta tables."""
