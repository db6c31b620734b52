"""How large a document is on its way, and packed."""

import gzip

ROOM = 4096
"""Bytes of a request kept free for its options."""


def inline_size(data: bytes) -> int:
    """Bytes of base64."""
    return -(-len(data) // 3) * 4


def gzipped(data: bytes) -> bytes:
    """The same bytes each time."""
    return gzip.compress(data, compresslevel=9, mtime=0)
