"""`file_base64`: the document inside the job itself."""

import base64
import binascii
from pathlib import Path

from handler.errors import InvalidBase64
from handler.sources.fetched import Fetched, too_large


def decode_to(encoded: str, path: Path, limit: int) -> Fetched:
    """Decode standard base64 into `path`. The size is checked before anything is decoded."""
    if len(encoded) // 4 * 3 - encoded[-2:].count("=") > limit:
        raise too_large(limit)
    path.write_bytes(_decoded(encoded))
    return Fetched(path)


def _decoded(encoded: str) -> bytes:
    if encoded.startswith("data:"):
        raise InvalidBase64("file_base64 starts with data:; give only what follows the comma")
    if encoded != encoded.strip() or "\n" in encoded:
        raise InvalidBase64("file_base64 has line breaks or spaces; encode it in one line")
    try:
        return base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidBase64(f"file_base64 is not standard base64: {error}") from None
