"""A text engine that looks at the picture: how much it says depends on the ink, and on the lines lying level.

It cannot read. It knows text from its lines: level text has gaps between its rows, and its lines begin at the left.
Turned text it answers with a few characters, as a real model does.
"""

import hashlib
import random
from collections.abc import Callable

import cv2
import numpy as np
from numpy.typing import NDArray

from handler.engine.api import EngineReply, EngineRequest
from tests.fakes.engine import FakeEngine, stop

LETTERS = "abcdefghijklmnopqrstuvwxyz"
CHARACTERS = 3000
LITTLE_INK = 3e-5
INK_LEVELS = 40
SINGLE_LINE = 12
"""Ink this many times longer than high is one line of text."""


def sighted_engine() -> FakeEngine:
    """The engine."""
    return FakeEngine(see)


def see(request: EngineRequest) -> EngineReply:
    """Much text for a picture with level lines, a little for any other ink, none for none."""
    grey = cv2.imdecode(np.frombuffer(request.jpeg, np.uint8), cv2.IMREAD_GRAYSCALE)
    assert grey is not None
    ink = _ink(np.asarray(grey, np.uint8))
    share = float(ink.mean())
    if share < LITTLE_INK:
        return stop("")
    words = _words(hashlib.sha256(request.jpeg).digest())
    return stop(words(CHARACTERS if is_level(ink) else 12))


def is_level(ink: NDArray[np.bool_]) -> bool:
    """Whether lines of text run from left to right, beginning at the left."""
    rows, columns = np.flatnonzero(ink.any(axis=1)), np.flatnonzero(ink.any(axis=0))
    height, width = int(rows[-1] - rows[0]) + 1, int(columns[-1] - columns[0]) + 1
    if width > SINGLE_LINE * height:
        return True
    if len(rows) / height >= len(columns) / width:
        return False
    middle = ink.shape[1] // 2
    return float(ink[:, :middle].sum()) >= float(ink[:, middle:].sum())


def _ink(grey: NDArray[np.uint8]) -> NDArray[np.bool_]:
    paper = int(np.bincount(grey.ravel(), minlength=256).argmax())
    return np.abs(grey.astype(np.int16) - paper) > INK_LEVELS


def _words(seed: bytes) -> Callable[[int], str]:
    chance = random.Random(seed)

    def words(characters: int) -> str:
        said = ""
        while len(said) < characters:
            said += "".join(chance.choices(LETTERS, k=chance.randint(2, 9))) + " "
        return said.strip()

    return words
