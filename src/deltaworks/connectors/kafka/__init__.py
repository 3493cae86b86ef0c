"""Kafka: client settings, offsets, topics."""
