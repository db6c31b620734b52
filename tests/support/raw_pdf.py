"""PDFs written object by object, for what no library would write."""

from typing import TypeAlias

Objects: TypeAlias = dict[int, bytes]


def stream(data: bytes, entries: bytes = b"") -> bytes:
    """A stream object."""
    return b"<<%s/Length %d>>\nstream\n%s\nendstream" % (entries, len(data), data)


def raw_pdf(objects: Objects, *, root: int = 1) -> bytes:
    """A file of these objects by number, with a right cross-reference table."""
    out = bytearray(b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n")
    offsets = {}
    for number, body in sorted(objects.items()):
        offsets[number] = len(out)
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    size = max(objects) + 1
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % size
    for number in range(1, size):
        at = offsets.get(number)
        out += b"%010d 00000 n \n" % at if at is not None else b"0000000000 00000 f \n"
    out += b"trailer\n<</Size %d/Root %d 0 R>>\nstartxref\n%d\n%%%%EOF\n" % (size, root, start)
    return bytes(out)
