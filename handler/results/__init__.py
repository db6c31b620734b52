"""How a result leaves the worker: measured, inline, gzip, volume or S3."""
