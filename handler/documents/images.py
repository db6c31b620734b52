"""Picture files as pages: every mode that Pillow opens, as RGB in which the ink shows.

Imported in render processes only. Sizes are checked from the header before anything is decoded; Pillow's own guard
stands behind it, because other code in the same interpreter may have turned it off.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageChops, ImageFile, ImageOps

from handler.documents.failures import RenderFailure
from handler.documents.ink import ink_mask, ink_share
from handler.documents.page import OpenedDocument
from handler.documents.scale import image_scale, scaled_down
from handler.documents.tiff_frames import TiffFrames
from handler.errors import DocumentTooLarge, DocumentUnreadable
from handler.layout.detector import Pixels
from handler.schema import DocumentKind, PageWarning, Reason

DECODE_PIXELS = 178_956_970
"""Pixels of one picture: twice Pillow's warning size, where Pillow itself refuses."""
SIDE_LIMIT = 65_535 * 4

FAILURES = (OSError, SyntaxError, ValueError, TypeError, KeyError, IndexError, EOFError, AttributeError, OverflowError)
"""What Pillow raises for damaged files, as seen in its tests and ours."""

_NO_INK = 1e-5


def open_picture(path: Path, kind: DocumentKind) -> OpenedDocument:
    """Count the pages: every frame of a TIFF is one, of other kinds only the first is read.

    Raises `DocumentUnreadable` or `DocumentTooLarge`.
    """
    try:
        if kind is DocumentKind.TIFF and (frames := len(TiffFrames(path).directories)) > 1:
            return OpenedDocument(frames)
        with _opened(path, kind) as picture:
            _check_size(picture)
            frames = _animated_frames(picture, kind)
    except RenderFailure as failure:
        raise DocumentTooLarge(failure.message) from None
    except FAILURES as error:
        raise DocumentUnreadable(f"the {kind.value} file is damaged at its start: {type(error).__name__}") from None
    return OpenedDocument(1, warnings=(_animation(frames).message,) if frames > 1 else ())


@dataclass(frozen=True, slots=True)
class Picture:
    """One frame, upright, as RGB."""

    pixels: Pixels
    warnings: tuple[PageWarning, ...]


def read_picture(path: Path, kind: DocumentKind, frame: int, max_pixels: int) -> Picture:
    """Frame `frame` (from 0) with at most `max_pixels`. Raises `RenderFailure`."""
    found: list[PageWarning] = []
    image = _decoded(path, kind, frame, max_pixels, found)
    return Picture(_scaled(_rgb(image), max_pixels), tuple(found))


def _opened(path: Path, kind: DocumentKind, frame: int = 0) -> Image.Image:
    Image.MAX_IMAGE_PIXELS = DECODE_PIXELS // 2
    source = cast("IO[bytes]", TiffFrames(path).at(frame)) if kind is DocumentKind.TIFF else path
    try:
        return Image.open(source, formats=[kind.value.upper()])
    except Image.DecompressionBombError as error:
        raise RenderFailure(Reason.RENDER_MEMORY, str(error).partition(", could")[0]) from None


def _check_size(image: Image.Image) -> None:
    width, height = image.size
    if width * height > DECODE_PIXELS or max(width, height) > SIDE_LIMIT:
        raise RenderFailure(
            Reason.RENDER_MEMORY, f"the picture has {width} x {height} pixels; at most {DECODE_PIXELS:,} are read"
        )


def _decoded(path: Path, kind: DocumentKind, frame: int, max_pixels: int, found: list[PageWarning]) -> Image.Image:
    try:
        return _load(path, kind, frame, max_pixels, found)
    except RenderFailure:
        raise
    except FAILURES as error:
        first = error
    ImageFile.LOAD_TRUNCATED_IMAGES = True
    try:
        image = _load(path, kind, frame, max_pixels, found)
    except FAILURES:
        raise RenderFailure(Reason.PAGE_DAMAGED, f"the picture cannot be decoded: {first}") from None
    finally:
        ImageFile.LOAD_TRUNCATED_IMAGES = False
    found.append(PageWarning(reason=Reason.PAGE_DAMAGED, message=f"the picture is damaged and read in part: {first}"))
    return image


def _load(path: Path, kind: DocumentKind, frame: int, max_pixels: int, found: list[PageWarning]) -> Image.Image:
    with _opened(path, kind, frame) as image:
        if (frames := _animated_frames(image, kind)) > 1:
            found.append(_animation(frames))
        _check_size(image)
        scale = image_scale(*image.size, max_pixels)
        if scale < 1:
            width, height = image.size
            found.append(scaled_down(f"the picture of {width} x {height} pixels is read at {scale:.0%} of its size"))
            image.draft(None, (round(width * scale), round(height * scale)))
        upright = _upright(image)
        unmarked_cmyk = kind is DocumentKind.JPEG and image.mode == "CMYK" and "adobe" not in image.info
        return _lighter(upright, ImageChops.invert(upright)) if unmarked_cmyk else upright


def _animated_frames(image: Image.Image, kind: DocumentKind) -> int:
    return 1 if kind is DocumentKind.TIFF else int(getattr(image, "n_frames", 1))


def _upright(image: Image.Image) -> Image.Image:
    """Decoded, and turned once as its orientation says.

    Pillow's TIFF reader turns by itself while decoding and removes the tag, but (13.0) only when the tags were read
    before.
    """
    image.getexif()
    image.load()
    return ImageOps.exif_transpose(image)


def _lighter(one: Image.Image, other: Image.Image) -> Image.Image:
    """CMYK with Adobe's marker is inverted; without it nobody knows, and the lighter reading is the page."""
    return max(one, other, key=lambda candidate: float(np.median(np.asarray(candidate.convert("L")))))


def _rgb(image: Image.Image) -> Pixels:
    mode = image.mode
    if mode == "F" or mode.startswith("I"):
        grey = _eight_bit(np.asarray(image))
        return np.repeat(grey[:, :, np.newaxis], 3, axis=2)
    if mode == "LAB":
        image = image.getchannel("L").convert("RGB")
    elif "A" in image.getbands() or "a" in image.getbands() or "transparency" in image.info:
        return _flattened(image.convert("RGBA"))
    return np.asarray(image if image.mode == "RGB" else image.convert("RGB"), np.uint8)


def _eight_bit(values: NDArray[np.generic]) -> NDArray[np.uint8]:
    """Grey of any depth as 8 bits: whole numbers by the bits they use, fractions by their range."""
    if np.issubdtype(values.dtype, np.floating):
        finite = np.nan_to_num(values.astype(np.float32), nan=0.0, posinf=0.0, neginf=0.0)
        low, high = min(0.0, float(finite.min())), float(finite.max())
        span = 1.0 if high <= 1.0 and low == 0.0 else 255.0 if high <= 255.0 and low == 0.0 else high - low
        return np.asarray(np.clip((finite - low) * (255.0 / span), 0, 255), np.uint8)
    whole = np.maximum(values.astype(np.int64), 0)
    shift = max(0, int(whole.max()).bit_length() - 8)
    return np.asarray(whole >> shift, np.uint8)


def _flattened(image: Image.Image) -> Pixels:
    """Alpha over white; over black where white would swallow light ink."""
    white = _over(image, 255)
    if ink_share(ink_mask(white)) > _NO_INK:
        return white
    black = _over(image, 0)
    return black if ink_share(ink_mask(black)) > _NO_INK else white


def _over(image: Image.Image, paper: int) -> Pixels:
    flat = Image.new("RGB", image.size, (paper, paper, paper))
    flat.paste(image, mask=image.getchannel("A"))
    return np.asarray(flat, np.uint8)


def _scaled(pixels: Pixels, max_pixels: int) -> Pixels:
    height, width = pixels.shape[:2]
    scale = image_scale(width, height, max_pixels)
    if scale >= 1:
        return pixels
    size = (max(1, int(width * scale)), max(1, int(height * scale)))
    return np.asarray(cv2.resize(pixels, size, interpolation=cv2.INTER_AREA), np.uint8)


def _animation(frames: int) -> PageWarning:
    return PageWarning(reason=Reason.OTHER, message=f"an animation: the first of its {frames} pictures is read")
