"""What the simulated engine reads in a picture: a text whose length follows from the picture's size and the prompt.

Print at 200 dpi carries about 0.3 tokens of text per image token (28 x 28 px), tables more by their mark-up. The
density varies by a fixed amount per size, so that regions of one kind differ. Equal sizes get answers of equal length.
"""

import random
from functools import cache
from zlib import crc32

PATCH = 28
CHARS_PER_TOKEN = 4
TEXT_DENSITY = 0.29
TABLE_DENSITY = 0.46
SPREAD = 0.25
PROMPT_OVERHEAD_TOKENS = 12
VOCABULARY = 4000


def image_tokens(width: int, height: int) -> int:
    """Tokens the engine makes of a picture of `width` x `height` pixels."""
    return (width // PATCH) * (height // PATCH)


def answer_tokens(table: bool, width: int, height: int) -> int:
    """Tokens of the whole text in the picture."""
    density = TABLE_DENSITY if table else TEXT_DENSITY
    vary = crc32(f"{table}/{width // PATCH}/{height // PATCH}".encode()) / 0xFFFFFFFF
    return max(2, round(image_tokens(width, height) * density * (1 - SPREAD + 2 * SPREAD * vary)))


@cache
def _words() -> str:
    draw = random.Random(0)
    letters = "etaoinshrdlucmfwypvbgk"
    vocabulary = ["".join(draw.choices(letters, k=draw.randint(2, 11))) for _ in range(VOCABULARY)]
    return " ".join(draw.choices(vocabulary, k=40_000))


def answer_text(table: bool, width: int, height: int, tokens: int, whole: int) -> str:
    """The first `tokens` of the picture's text of `whole` tokens, about 4 characters each. A whole table is closed."""
    start = crc32(f"{width}x{height}".encode()) % 20_000
    plain = _words()[start : start + whole * CHARS_PER_TOKEN].strip()
    if table:
        rows = [plain[i : i + 80] for i in range(0, len(plain), 80)]
        cells = "".join(f"<tr><td>{row[:40]}</td><td>{row[40:]}</td></tr>" for row in rows)
        plain = f"<table>{cells}</table>"
    return plain if tokens >= whole else plain[: tokens * CHARS_PER_TOKEN]
