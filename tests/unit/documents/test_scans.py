import io

import numpy as np
import pytest
import simplejpeg
from PIL import Image

from handler.documents.buffers import COLOUR, GREY
from handler.documents.lean import pymupdf
from handler.documents.scans import Scan, draw_scan, scan_of
from handler.layout.detector import Pixels

WIDTH, HEIGHT = 300, 400


def picture(width: int = WIDTH, height: int = HEIGHT) -> Pixels:
    draw = np.random.default_rng(7)
    coarse = draw.integers(0, 255, (height // 20, width // 20, 3), np.uint8)
    return np.asarray(Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC))


def jpeg(pixels: Pixels, mode: str = "RGB") -> bytes:
    held = io.BytesIO()
    Image.fromarray(pixels).convert(mode).save(held, "JPEG", quality=92)
    return held.getvalue()


def document(data: bytes, *, rectangle: tuple[int, int, int, int] = (0, 0, WIDTH, HEIGHT)) -> pymupdf.Document:
    made = pymupdf.open()
    made.new_page(width=WIDTH, height=HEIGHT).insert_image(pymupdf.Rect(rectangle), stream=data)
    if simplejpeg.decode_jpeg_header(data)[2] == "Gray":
        made.xref_set_key(made[0].get_images()[0][0], "ColorSpace", "/DeviceGray")
    return pymupdf.open(stream=made.tobytes())


@pytest.mark.parametrize(("mode", "times"), [("RGB", 1), ("L", 1), ("RGB", 2), ("RGB", 3)])
def test_a_scan_looks_as_mupdf_draws_it(mode: str, times: int) -> None:
    made = document(jpeg(picture(WIDTH * times, HEIGHT * times), mode))
    found = scan_of(made, made[0])
    assert found is not None
    assert found.grey is (mode == "L")
    target = np.zeros((HEIGHT, WIDTH, GREY if found.grey else COLOUR), np.uint8)
    assert draw_scan(found, target)
    drawn = made[0].get_pixmap(alpha=False)
    expected = np.frombuffer(drawn.samples, np.uint8).reshape(drawn.height, drawn.width, 3)
    assert np.abs(target.astype(int) - expected).mean() < 4


def with_text() -> pymupdf.Document:
    made = document(jpeg(picture()))
    made[0].insert_text((50, 50), "stamped")
    return pymupdf.open(stream=made.tobytes())


def with_annotation() -> pymupdf.Document:
    made = document(jpeg(picture()))
    made[0].add_text_annot((50, 50), "note")
    return pymupdf.open(stream=made.tobytes())


def turned() -> pymupdf.Document:
    made = document(jpeg(picture()))
    made[0].set_rotation(90)
    return pymupdf.open(stream=made.tobytes())


def cropped() -> pymupdf.Document:
    made = document(jpeg(picture()))
    made[0].set_cropbox(pymupdf.Rect(0, 0, 100, 100))
    return pymupdf.open(stream=made.tobytes())


def inverted() -> pymupdf.Document:
    made = document(jpeg(picture()))
    made.xref_set_key(made[0].get_images()[0][0], "Decode", "[1 0 1 0 1 0]")
    return pymupdf.open(stream=made.tobytes())


def other_profile() -> pymupdf.Document:
    made = document(jpeg(picture()))
    profile = made.get_new_xref()
    made.update_object(profile, "<</N 3/Alternate/DeviceRGB>>")
    made.update_stream(profile, b"some other profile", new=True)
    made.xref_set_key(made[0].get_images()[0][0], "ColorSpace", f"[/ICCBased {profile} 0 R]")
    return pymupdf.open(stream=made.tobytes())


def text_only() -> pymupdf.Document:
    made = pymupdf.open()
    made.new_page(width=WIDTH, height=HEIGHT).insert_text((50, 50), "words")
    return made


def empty() -> pymupdf.Document:
    made = pymupdf.open()
    made.new_page(width=WIDTH, height=HEIGHT)
    return made


@pytest.mark.parametrize(
    "made",
    [
        with_text(),
        with_annotation(),
        turned(),
        cropped(),
        inverted(),
        other_profile(),
        text_only(),
        empty(),
        document(jpeg(picture(), "CMYK")),
        document(jpeg(picture()), rectangle=(10, 10, WIDTH - 10, HEIGHT - 10)),
        document(jpeg(picture())[:-2000] + b"\xff\xd9"),
    ],
    ids=["text", "annotation", "turned", "cropped", "inverted", "profile", "words", "empty", "cmyk", "margin", "cut"],
)
def test_anything_else_is_left_to_mupdf(made: pymupdf.Document) -> None:
    found = scan_of(made, made[0])
    assert found is None or not draw_scan(found, np.zeros((HEIGHT, WIDTH, COLOUR), np.uint8))


def test_a_damaged_picture_is_not_taken() -> None:
    data = jpeg(picture())
    target = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
    assert not draw_scan(Scan(data[: len(data) // 2], grey=False), target)
    assert draw_scan(Scan(simplejpeg.encode_jpeg(picture()), grey=False), target)
