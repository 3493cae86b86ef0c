"""Java on this machine: where it is, and the options a JVM starts with."""
