"""Object storage: one protocol, S3 behind it, and an in-memory twin."""
