"""Kafka without a JVM: how it is reached, and which messages there are."""
