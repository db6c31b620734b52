"""What SGLang must be told about the tiny model; apart from its builder, which needs torch."""

MERGER_WIDTH = 192
"""Rows of the vision merger. SGLang 0.5.20-0.5.23 need to be told, as with the published weights' 4608."""
