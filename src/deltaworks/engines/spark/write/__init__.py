"""Writers of what is not a Delta table: Kafka, folders of files."""
