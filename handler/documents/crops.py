"""Regions as pictures the engine accepts: sides multiples of 28 px, not under 28, ratio well under 200.

The arithmetic of the size is GLM-OCR's own image processor's, so that the engine does not resize again. Cubic resize by
OpenCV and JPEG by simplejpeg cost a third, and two thirds, of what Pillow takes.
"""

import itertools
import math

import cv2
import numpy as np
import simplejpeg
from numpy.typing import NDArray

from handler.documents.buffers import GREY
from handler.documents.ink import Inked, measure
from handler.documents.page import Crop, Cut, CutRequest
from handler.geometry import PixelBox
from handler.layout.detector import Pixels

FACTOR = 28
"""Patch of 14 px times a merge of 2."""
TEMPORAL = 2
"""The processor counts a still picture as two frames in its pixel limits."""
MIN_PIXELS = 112 * 112
MAX_TOKENS = 12_288
"""Picture tokens per crop, one per 28 x 28 px: more than two A4 pages at 200 dpi, and room for the answer in a context
of 32768, which the 45,525 that `glmocr` 0.1.5 allows would not leave."""
MAX_RATIO = 150
"""SGLang 0.5.23 refuses above 200:1; rounding to multiples of 28 adds some."""
TILE_RATIO = 40
QUIET_PX = 9
"""A strip is cut in the middle of a gap at least this wide, if there is one."""
JPEG_QUALITY = 75
FIGURE_QUALITY = 90
COLOUR_STEP = 16
"""Pixels between those looked at first for colour."""

_GROWTH = 0.03
_GROWTH_PX = 6


def cut(page: Pixels, request: CutRequest) -> Cut:
    """Cut one region out of a page and encode it; several tiles when it is an extreme strip."""
    height, width = page.shape[:2]
    box = request.box.clamped(width, height)
    if request.variant:
        box = _grown(box).clamped(width, height)
    region = page[box.y0 : box.y1, box.x0 : box.x1]
    inked = measure(region)
    tiles = _tiles(_padded(region, inked))
    readable = [tile for tile in tiles if len(tiles) == 1 or measure(tile).ink > 0]
    return Cut(tuple(_encoded(tile) for tile in readable or tiles[:1]), inked.ink, inked.contrast)


def figure(page: Pixels, box: PixelBox) -> bytes:
    """The region as it is, as a JPEG file for people."""
    height, width = page.shape[:2]
    inside = box.clamped(width, height)
    return _jpeg(page[inside.y0 : inside.y1, inside.x0 : inside.x1], FIGURE_QUALITY)


def engine_size(width: int, height: int) -> tuple[int, int]:
    """Width and height the engine's processor would resize to: multiples of 28 within its pixel limits."""
    across, down = (max(FACTOR, round(side / FACTOR) * FACTOR) for side in (width, height))
    if across * down > MAX_TOKENS * FACTOR**2:
        shrink = math.sqrt(width * height / MAX_TOKENS) / FACTOR
        return (
            max(FACTOR, math.floor(width / shrink / FACTOR) * FACTOR),
            max(FACTOR, math.floor(height / shrink / FACTOR) * FACTOR),
        )
    if TEMPORAL * across * down < MIN_PIXELS:
        grow = math.sqrt(MIN_PIXELS / (TEMPORAL * width * height))
        return math.ceil(width * grow / FACTOR) * FACTOR, math.ceil(height * grow / FACTOR) * FACTOR
    return across, down


def _grown(box: PixelBox) -> PixelBox:
    across, down = (int(side * _GROWTH) + _GROWTH_PX for side in (box.width, box.height))
    return PixelBox(box.x0 - across, box.y0 - down, box.x1 + across, box.y1 + down)


def _padded(region: Pixels, inked: Inked) -> Pixels:
    """At least 28 px each way, with paper around: the engine refuses less, and stretching a sliver distorts it."""
    height, width = region.shape[:2]
    down, across = max(0, FACTOR - height), max(0, FACTOR - width)
    if not (down or across):
        return region
    sides = ((down // 2, down - down // 2), (across // 2, across - across // 2), (0, 0))
    return np.pad(region, sides, constant_values=inked.paper)


def _tiles(region: Pixels) -> list[Pixels]:
    """The region itself, or its parts in reading order when it is longer than the engine takes."""
    height, width = region.shape[:2]
    sent = engine_size(width, height)
    if max(sent) <= MAX_RATIO * min(sent):
        return [region]
    across = width > height
    count = math.ceil(max(width, height) / (TILE_RATIO * min(width, height)))
    edges = _quiet_cuts(region if across else region.transpose(1, 0, 2), count)
    return [region[:, a:b] if across else region[a:b] for a, b in itertools.pairwise(edges)]


def _quiet_cuts(strip: Pixels, count: int) -> list[int]:
    """Where to cut a horizontal strip into `count` parts: near equal parts, where the least ink is cut through."""
    length = strip.shape[1]
    contrast = strip.max(axis=(0, 2)).astype(np.int32) - strip.min(axis=(0, 2))
    busy = np.convolve(contrast, np.ones(QUIET_PX, np.int32), "same")
    reach = length // count // 4
    edges = [0]
    for index in range(1, count):
        nominal = length * index // count
        edges.append(nominal - reach + int(busy[nominal - reach : nominal + reach + 1].argmin()))
    return [*edges, length]


def _encoded(region: Pixels) -> Crop:
    height, width = region.shape[:2]
    size = engine_size(width, height)
    plane = region[:, :, 0] if region.shape[2] == GREY else _grey_plane(region)
    if plane is not None:
        return Crop(_grey_jpeg(_resized(plane, size)), *size)
    return Crop(_jpeg(_resized(region, size), JPEG_QUALITY), *size)


def _resized(picture: NDArray[np.uint8], size: tuple[int, int]) -> NDArray[np.uint8]:
    if size == (picture.shape[1], picture.shape[0]):
        return picture
    return np.asarray(cv2.resize(picture, size, interpolation=cv2.INTER_CUBIC), np.uint8)


def _grey_plane(region: Pixels) -> NDArray[np.uint8] | None:
    """The one plane of a region without colour on a page that has some: it resizes in a third of the time."""
    sample = region[::COLOUR_STEP, ::COLOUR_STEP]
    if (sample != sample[:, :, :1]).any():
        return None
    red, green, blue = cv2.split(region)
    without = cv2.norm(red, green, cv2.NORM_INF) == cv2.norm(green, blue, cv2.NORM_INF) == 0
    return np.asarray(green, np.uint8) if without else None


def _grey_jpeg(plane: NDArray[np.uint8]) -> bytes:
    """A colour JPEG whose colour planes are empty, since an engine may read one without them differently.

    The sides of `plane` are even.
    """
    height, width = plane.shape
    empty = np.full((height // 2, width // 2), 128, np.uint8)
    encoded: bytes = simplejpeg.encode_jpeg_yuv_planes(np.ascontiguousarray(plane), empty, empty, quality=JPEG_QUALITY)
    return encoded


def _jpeg(pixels: Pixels, quality: int) -> bytes:
    colours, subsampling = ("GRAY", "Gray") if pixels.shape[2] == GREY else ("RGB", "420")
    encoded: bytes = simplejpeg.encode_jpeg(
        np.ascontiguousarray(pixels), quality=quality, colorspace=colours, colorsubsampling=subsampling
    )
    return encoded
