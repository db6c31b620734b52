"""Pillow's guard against decompression bombs, which glmocr's page loader switches off for the whole process."""

from importlib.util import find_spec

from handler.patches.patch import Patch

MAX_PIXELS = 1024 * 1024 * 1024 // 4 // 3
"""Pillow's own default; it refuses pictures of more than twice as many pixels."""


def needed() -> bool:
    """Whether the guard is off, once everything that switches it off has been imported."""
    from PIL import Image

    if find_spec("glmocr") is not None:
        import glmocr.dataloader.page_loader  # noqa: F401 - for its side effect, now rather than later
    return Image.MAX_IMAGE_PIXELS is None


def apply() -> None:
    """Switch it on again."""
    from PIL import Image

    Image.MAX_IMAGE_PIXELS = MAX_PIXELS


def verify() -> bool:
    """Whether it is on."""
    from PIL import Image

    return Image.MAX_IMAGE_PIXELS is not None


PATCH = Patch(
    name="pillow_pixels",
    target="pillow",
    why="glmocr sets Image.MAX_IMAGE_PIXELS = None when it is imported",
    needed=needed,
    apply=apply,
    verify=verify,
)
