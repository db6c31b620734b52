import json
from pathlib import Path

import pymupdf
import pytest
from PIL import Image, ImageOps

from scripts import make_examples
from scripts.example_text import PAGES, page_text

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("made")
    make_examples.main(root)
    return root


def files(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes()
        for folder in ("examples", "handler/golden")
        for path in (root / folder).iterdir()
        if path.suffix != ".py" and path.is_file()
    }


def test_a_second_run_makes_the_same_files(made: Path, tmp_path: Path) -> None:
    make_examples.main(tmp_path)
    assert files(tmp_path) == files(made)


@pytest.mark.parametrize("name", ["examples/agreement.txt", "handler/golden/expected.json"])
def test_the_tree_has_the_text_the_script_makes(made: Path, name: str) -> None:
    assert (ROOT / name).read_text(encoding="utf-8") == (made / name).read_text(encoding="utf-8")


def test_the_born_digital_pages_say_what_is_written_down() -> None:
    with pymupdf.open(ROOT / "examples" / "agreement.pdf") as document:
        read = [sorted(page.get_text().split()) for page in document]
    assert read == [sorted(page_text(page).split()) for page in PAGES]


def test_the_scan_has_no_text_layer() -> None:
    with pymupdf.open(ROOT / "examples" / "scan.pdf") as document:
        assert [page.get_text() for page in document] == ["", "", ""]


def test_the_photo_is_stored_on_its_side() -> None:
    with Image.open(ROOT / "examples" / "photo.jpg") as photo:
        assert photo.getexif()[make_examples.EXIF_ORIENTATION] == 6
        assert photo.width > photo.height
        upright = ImageOps.exif_transpose(photo)
        assert upright.width < upright.height


def test_the_golden_page_holds_the_words_it_is_checked_for() -> None:
    golden = ROOT / "handler" / "golden"
    expected = json.loads((golden / "expected.json").read_text(encoding="utf-8"))
    with pymupdf.open(golden / "page.pdf") as document:
        assert sorted(document[0].get_text().split()) == sorted(expected["words"])
