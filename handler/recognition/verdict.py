"""From an answer to a region's status: pure judgement, no request is sent from here."""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from handler.recognition.asking import LENGTH
from handler.recognition.prompts import FIGURES, Task
from handler.recognition.reading import Answer, Reading, chosen
from handler.recognition.repetition import find_loop
from handler.schema import Label, Reason, RegionStatus

INK_FLOOR = 0.0002
"""Below this share of ink a region counts as free of it, and a page as blank. A full stop alone in a line of 900 x 40
px has 0.001."""
LOW_CONTRAST = 0.25
"""Below this difference between paper and ink (0 to 1) a region's text is doubtful. What differs by less than 0.16 is
no ink at all: bleed-through and the noise of JPEG."""
FOREIGN_SHARE = 0.2
"""From this share of letters of other scripts on, a region's text is doubtful."""

WITHHELD = "content_filter"
"""How OpenAI-compatible servers with a filter end an answer that they cut."""

SCRIPTS = frozenset(
    {"LATIN", "CJK", "HIRAGANA", "KATAKANA", "HANGUL", "CYRILLIC", "GREEK", "FULLWIDTH", "MATHEMATICAL"}
)
"""Scripts of the languages that GLM-OCR's authors list (Chinese, English, French, Spanish, Russian, German, Japanese,
Korean), and those of formulas, as the first words of Unicode's character names."""

_SEVERITY = (RegionStatus.OK, RegionStatus.SKIPPED, RegionStatus.TRUNCATED, RegionStatus.FAILED)


@dataclass(frozen=True, slots=True)
class Asked:
    """What was asked, and what is known of the region before any answer."""

    label: Label
    task: Task
    ink: float
    contrast: float
    suspected: bool = False
    """Only its ink suggests that there may be text: a shadow or a stroke need not hold any."""

    @property
    def has_ink(self) -> bool:
        """Whether there is anything to read."""
        return self.ink >= INK_FLOOR

    @property
    def must_have_text(self) -> bool:
        """Whether an empty answer is a failure; a picture need not hold text."""
        return self.has_ink and not self.suspected and self.label not in FIGURES


def judge(answer: Answer, asked: Asked) -> Reading:
    """The reading of one picture. The text stays as it is, whatever the verdict."""
    status, reason, message = _verdict(answer, asked)
    return Reading(
        text=answer.text,
        status=status,
        finish_reason=answer.finish_reason,
        reason=reason,
        message=message,
        requests=answer.requests,
        prompt_tokens=answer.prompt_tokens,
        completion_tokens=answer.completion_tokens,
        superseded=answer.superseded,
        retractions=answer.retractions,
    )


def joined(readings: Sequence[Reading], separator: str) -> Reading:
    """The reading of a region that was cut into tiles: texts in order, the worst status with its reason."""
    if len(readings) == 1:
        return readings[0]
    worst = max(readings, key=lambda reading: (_SEVERITY.index(reading.status), reading.reason is not None))
    return chosen(replace(worst, text=separator.join(reading.text for reading in readings)), readings)


def is_echo(text: str) -> bool:
    """Whether the model said nothing but a prompt of ours, once or more."""
    rest = text
    for task in Task:
        rest = rest.replace(task, "")
    return rest != text and not rest.strip()


def _verdict(answer: Answer, asked: Asked) -> tuple[RegionStatus, Reason | None, str | None]:
    text = answer.text
    if answer.failure is not None:
        cut_short = answer.failure is Reason.ABORTED and text.strip()
        return RegionStatus.TRUNCATED if cut_short else RegionStatus.FAILED, answer.failure, answer.message
    if not text.strip():
        if asked.must_have_text:
            return RegionStatus.FAILED, Reason.EMPTY_ANSWER, "the engine said nothing about a region with ink"
        if asked.suspected:
            return RegionStatus.SKIPPED, Reason.EMPTY_ANSWER, "no text is seen in this area with ink"
        return RegionStatus.OK, None, None
    if not asked.has_ink:
        return RegionStatus.SKIPPED, Reason.TEXT_WITHOUT_INK, "the region has no ink; the text is likely invented"
    if is_echo(text):
        return RegionStatus.FAILED, Reason.PROMPT_ECHO, "the engine only repeated the prompt"
    return _of_text(answer, asked)


def _of_text(answer: Answer, asked: Asked) -> tuple[RegionStatus, Reason | None, str | None]:
    text = answer.text
    out_of_tokens = answer.finish_reason == LENGTH
    loop = find_loop(text, ended=not out_of_tokens, begun_anew=answer.retractions > 0)
    if loop:
        status = RegionStatus.TRUNCATED if out_of_tokens else RegionStatus.OK
        unit = text[loop.start : loop.start + min(loop.period, 40)]
        cause = "; the engine had begun the answer anew" if answer.retractions else ""
        return status, Reason.REPETITION, f"{loop.repeats} times {unit!r}{cause}"
    if answer.finish_reason == WITHHELD:
        return RegionStatus.TRUNCATED, Reason.ABORTED, "the engine withheld the rest of the answer"
    if out_of_tokens:
        return RegionStatus.TRUNCATED, Reason.TOKEN_LIMIT, answer.message or "the answer reached the token limit"
    if _has_open_table(text, asked.task):
        return RegionStatus.TRUNCATED, Reason.UNCLOSED_TABLE, "the table has no end"
    return (RegionStatus.OK, *_note(text, asked))


def _has_open_table(text: str, task: Task) -> bool:
    """Outside of table regions only a tag that begins a line counts, and none beside code."""
    if task is not Task.TABLE and "```" in text:
        return False
    opening = r"<table[\s>]" if task is Task.TABLE else r"(?m)^<table[\s>]"
    return len(re.findall(opening, text)) > text.count("</table>")


def _note(text: str, asked: Asked) -> tuple[Reason | None, str | None]:
    """What is notable about a region that was read."""
    if text.lstrip().startswith(tuple(Task)):
        return Reason.PROMPT_ECHO, "the text begins with the prompt"
    foreign = foreign_script(text)
    if foreign:
        return Reason.SCRIPT_UNSUPPORTED, f"the model was not made for {foreign.title()} script"
    if asked.contrast < LOW_CONTRAST:
        return Reason.LOW_CONTRAST, f"paper and ink differ by {asked.contrast:.0%}"
    return None, None


def foreign_script(text: str) -> str | None:
    """The commonest script of `text` that the model was not made for, if enough of the letters belong to such."""
    if text.isascii():
        return None
    letters = Counter({c: count for c, count in Counter(text).items() if c.isalpha()})
    foreign: Counter[str] = Counter()
    for letter, count in letters.items():
        script = unicodedata.name(letter, "UNKNOWN").split()[0].split("-")[0]
        if not letter.isascii() and script not in SCRIPTS:
            foreign[script] += count
    if not foreign or foreign.total() < FOREIGN_SHARE * letters.total():
        return None
    return max(sorted(foreign), key=foreign.__getitem__)
