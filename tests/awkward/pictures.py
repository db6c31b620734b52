"""Pictures in every mode, turned, cut, stacked and oversized."""

import io
import struct
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from PIL import Image, ImageOps

from handler.schema import ErrorCode
from tests.awkward.case import Case
from tests.awkward.pdfs import lines_picture

ORIENTATION = 0x0112


def written(image: Image.Image, kind: str, **options: Any) -> bytes:
    """The file."""
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def transparent(mode: str, ink: int) -> Image.Image:
    """Ink of one grey on nothing."""
    mask = ImageOps.invert(lines_picture()).point(lambda v: 255 if v > 128 else 0)
    flat = Image.new("L", mask.size, ink)
    return Image.merge("LA", (flat, mask)).convert(mode)


def deep(kind: str, scale: float, dtype: str) -> bytes:
    """The lines in another depth."""
    values = np.asarray(lines_picture(), np.float64) / 255 * scale
    return written(Image.fromarray(values.astype(dtype)), kind)


def oriented(orientation: int, kind: str = "JPEG") -> bytes:
    """Turned so that the tag turns it back."""
    undo = {
        2: Image.Transpose.FLIP_LEFT_RIGHT,
        3: Image.Transpose.ROTATE_180,
        4: Image.Transpose.FLIP_TOP_BOTTOM,
        5: Image.Transpose.TRANSPOSE,
        6: Image.Transpose.ROTATE_90,
        7: Image.Transpose.TRANSVERSE,
        8: Image.Transpose.ROTATE_270,
    }
    exif = Image.Exif()
    exif[ORIENTATION] = orientation
    return written(lines_picture().transpose(undo[orientation]), kind, exif=exif)


def cmyk(*, adobe: bool) -> bytes:
    """A CMYK JPEG, with Adobe's marker or with the marker cut out."""
    content = written(lines_picture(mode="RGB").convert("CMYK"), "JPEG", quality=90)
    if adobe:
        return content
    at = content.index(b"\xff\xee")
    return content[:at] + content[at + 2 + int.from_bytes(content[at + 2 : at + 4], "big") :]


def frames(kind: str, count: int, **options: Any) -> bytes:
    """Several pictures in one file."""
    pictures = [lines_picture((800, 1000 + 10 * number), "RGB") for number in range(count)]
    if kind != "TIFF":
        pictures = [picture.resize((800, 1000)).rotate(number) for number, picture in enumerate(pictures)]
    return written(pictures[0], kind, save_all=True, append_images=pictures[1:], **options)


def second_frame_broken() -> bytes:
    """A TIFF of three frames whose second has lost its data."""
    content = bytearray(frames("TIFF", 3, compression="tiff_deflate"))
    first = int.from_bytes(content[4:8], "little")
    entries = int.from_bytes(content[first : first + 2], "little")
    second = int.from_bytes(content[first + 2 + 12 * entries :][:4], "little")
    count = int.from_bytes(content[second : second + 2], "little")
    for entry in range(count):
        at = second + 2 + 12 * entry
        if int.from_bytes(content[at : at + 2], "little") == 273:
            content[at + 8 : at + 12] = (2**31).to_bytes(4, "little")
    return bytes(content)


def bomb(width: int, height: int) -> bytes:
    """A one-bit PNG that unpacks to width x height pixels of white, a few kB packed."""
    row = b"\0" + b"\xff" * ((width + 7) // 8)
    packer = zlib.compressobj(9)
    data = b"".join(packer.compress(row) for _ in range(height)) + packer.flush()
    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", data), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body)) for name, body in chunks
    )


def damaged(content: bytes, share: float) -> bytes:
    """The first part only."""
    return content[: int(len(content) * share)]


def strip(width: int, height: int) -> bytes:
    """Much longer than the engine takes."""
    image = Image.new("L", (width, height), 255)
    if width > height:
        for top in range(2, height - 3, 6):
            image.paste(0, (5, top, width * 7 // 10, top + 3))
    else:
        for top in range(5, height - 12, 12):
            image.paste(0, (1, top, width * 6 // 10, top + 5))
    return written(image, "PNG")


def cases() -> Iterator[Case]:
    """All of them."""
    yield from _modes()
    yield from _turned()
    yield from _stacked()
    yield from _damaged()
    yield from _sized()


def _modes() -> Iterator[Case]:
    ok = ("ok",)
    for mode in ("RGB", "L", "1", "P", "RGBA", "LA"):
        yield Case(f"PNG {mode}", lambda mode=mode: written(lines_picture(mode=mode), "PNG"), ok)
    for mode in ("RGBA", "LA"):
        yield Case(f"PNG {mode}, black on transparent", lambda m=mode: written(transparent(m, 0), "PNG"), ok)
        yield Case(f"PNG {mode}, white on transparent", lambda m=mode: written(transparent(m, 255), "PNG"), ok)
    palette = lines_picture(mode="P")
    yield Case("PNG palette with a transparent colour", lambda: written(palette, "PNG", transparency=245), ok)
    yield Case("PNG 16-bit grey", lambda: deep("PNG", 60000, "uint16"), ok)
    yield Case("TIFF 16-bit grey", lambda: deep("TIFF", 60000, "uint16"), ok)
    yield Case("TIFF 12 bits in 16", lambda: deep("TIFF", 4095, "uint16"), ok)
    yield Case("TIFF 32-bit whole numbers", lambda: deep("TIFF", 2_000_000, "int32"), ok)
    yield Case("TIFF fractions up to 1", lambda: deep("TIFF", 1, "float32"), ok)
    yield Case("TIFF fractions up to 255", lambda: deep("TIFF", 255, "float32"), ok)
    for mode in ("CMYK", "LAB", "YCbCr"):
        image = lines_picture(mode="RGB").convert(mode) if mode != "LAB" else Image.merge("LAB", [lines_picture()] * 3)
        yield Case(f"TIFF {mode}", lambda image=image: written(image, "TIFF"), ok)
    yield Case("JPEG CMYK with Adobe's marker", lambda: cmyk(adobe=True), ok)
    yield Case("JPEG CMYK without it", lambda: cmyk(adobe=False), ok)
    yield Case("JPEG progressive grey", lambda: written(lines_picture(), "JPEG", progressive=True), ok)
    yield Case("BMP 24 bits", lambda: written(lines_picture(mode="RGB"), "BMP"), ok)
    yield Case("BMP palette", lambda: written(lines_picture(mode="P"), "BMP"), ok)
    yield Case("WebP", lambda: written(lines_picture(mode="RGB"), "WEBP"), ok)
    yield Case("WebP lossless with alpha", lambda: written(transparent("RGBA", 0), "WEBP", lossless=True), ok)
    yield Case("GIF", lambda: written(lines_picture(), "GIF"), ok)


def _turned() -> Iterator[Case]:
    for orientation in range(2, 9):
        yield Case(f"JPEG with EXIF orientation {orientation}", lambda o=orientation: oriented(o), ("ok",))
    yield Case("TIFF with orientation 6", lambda: oriented(6, "TIFF"), ("ok",))
    yield Case("PNG with orientation 8", lambda: oriented(8, "PNG"), ("ok",))
    sideways = lines_picture().transpose(Image.Transpose.ROTATE_270)
    yield Case("photo on its side, no tag", lambda: written(sideways, "JPEG"), ("ok@270",))


def _stacked() -> Iterator[Case]:
    yield Case("TIFF of three frames", lambda: frames("TIFF", 3), ("ok", "ok", "ok"))
    yield Case("TIFF of three frames, one asked for", lambda: frames("TIFF", 3), ("ok",), {"pages": "2"})
    yield Case("BigTIFF", lambda: frames("TIFF", 2, big_tiff=True), ("ok", "ok"))
    g4 = lines_picture(mode="1")
    yield Case("TIFF fax group 4", lambda: written(g4, "TIFF", compression="group4"), ("ok",))
    yield Case("TIFF LZW", lambda: written(lines_picture(), "TIFF", compression="tiff_lzw"), ("ok",))
    yield Case("TIFF JPEG", lambda: written(lines_picture(mode="RGB"), "TIFF", compression="jpeg"), ("ok",))
    yield Case("TIFF with a broken second frame", second_frame_broken, ("ok", "failed:page_damaged", "ok"))
    yield Case("GIF of two frames", lambda: frames("GIF", 2), ("ok+other",))
    yield Case("WebP of two frames", lambda: frames("WEBP", 2), ("ok+other",))
    yield Case("PNG of two frames", lambda: frames("PNG", 2), ("ok+other",))


def _damaged() -> Iterator[Case]:
    photo = lines_picture(mode="RGB")
    yield Case("JPEG cut in two", lambda: damaged(written(photo, "JPEG"), 0.5), ("ok+page_damaged",))
    yield Case("PNG cut in two", lambda: damaged(written(photo, "PNG"), 0.5), ("ok+page_damaged",))
    yield Case("JPEG of only a start", lambda: b"\xff\xd8\xff\xe0", ErrorCode.DOCUMENT_UNREADABLE)
    yield Case("PNG of only a start", lambda: damaged(written(photo, "PNG"), 0.005), ErrorCode.DOCUMENT_UNREADABLE)
    yield Case("TIFF with its directory cut off", lambda: b"II*\0\xff\xff\xff\x7f", ErrorCode.DOCUMENT_UNREADABLE)
    yield Case("GIF of only a header", lambda: b"GIF89a", ErrorCode.DOCUMENT_UNREADABLE)


def _sized() -> Iterator[Case]:
    yield Case("PNG of 30000 x 30000", lambda: bomb(30_000, 30_000), ErrorCode.DOCUMENT_TOO_LARGE)
    yield Case("PNG of 12000 x 9000, white", lambda: bomb(12_000, 9_000), ("blank+page_scaled_down",))
    yield Case("PNG of 3500 x 3000", lambda: written(lines_picture((3500, 3000)), "PNG"), ("ok",))
    yield Case("PNG of 1 x 1", lambda: written(Image.new("RGB", (1, 1)), "PNG"), ("blank",))
    yield Case("PNG of 200 x 250", lambda: written(lines_picture((200, 250)), "PNG"), ("ok",))
    yield Case("strip of 20000 x 15", lambda: strip(20_000, 15), ("ok",))
    yield Case("strip of 15 x 20000", lambda: strip(15, 20_000), ("ok",))
    yield Case("one grey all over", lambda: written(Image.new("L", (500, 500), 128), "PNG"), ("blank",))
    yield Case("black all over", lambda: written(Image.new("L", (500, 500)), "PNG"), ("blank",))
