import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from handler.documents.tiff_frames import TiffFrames


def tiff(count: int, **options: bool) -> bytes:
    pictures = [Image.new("L", (8 + number, 8)) for number in range(count)]
    buffer = io.BytesIO()
    pictures[0].save(buffer, "TIFF", save_all=True, append_images=pictures[1:], **options)
    return buffer.getvalue()


@pytest.mark.parametrize("big", [False, True])
def test_each_frame_is_shown_as_the_first(tmp_path: Path, big: bool) -> None:
    path = tmp_path / "a.tif"
    path.write_bytes(tiff(4, big_tiff=big))
    frames = TiffFrames(path)
    assert len(frames.directories) == 4
    for frame in (2, 0, 3, 1):
        with Image.open(frames.at(frame)) as picture:  # type: ignore[arg-type]
            assert picture.size == (8 + frame, 8)
    assert path.read_bytes() == tiff(4, big_tiff=big), "the file itself stays as it is"


def test_a_chain_that_loops_ends(tmp_path: Path) -> None:
    content = bytearray(tiff(1))
    first = int.from_bytes(content[4:8], "little")
    entries = int.from_bytes(content[first : first + 2], "little")
    content[first + 2 + 12 * entries : first + 6 + 12 * entries] = content[4:8]
    path = tmp_path / "a.tif"
    path.write_bytes(content)
    assert len(TiffFrames(path).directories) == 1


@given(st.binary(min_size=1, max_size=200))
def test_any_bytes_have_a_number_of_frames(tmp_path_factory: pytest.TempPathFactory, junk: bytes) -> None:
    path = tmp_path_factory.mktemp("tiff") / "a.tif"
    path.write_bytes(b"II*\0" + junk)
    assert len(TiffFrames(path).directories) >= 0
