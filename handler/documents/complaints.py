"""What MuPDF complained about, as warnings of the page it was reading then."""

import re

from handler.schema import PageWarning, Reason

MESSAGES_LIMIT = 5
MESSAGE_LENGTH = 200

_LOSS = re.compile(
    r"error|not be correct|not a stream|cannot|premature end|truncated|non-page object|broken|failed|ignoring|missing|"
    r"corrupt",
    re.IGNORECASE,
)
_REPEATED = re.compile(r"\.\.\. repeated \d+ times")


def lines_of(messages: str) -> tuple[str, ...]:
    """MuPDF's messages, each once, the counts of repetition left out."""
    lines = (line.strip() for line in messages.splitlines())
    return tuple(dict.fromkeys(line for line in lines if line and not _REPEATED.match(line)))


def tell_of_loss(lines: tuple[str, ...]) -> bool:
    """Whether something on the page may be missing, rather than merely odd."""
    return any(_LOSS.search(line) for line in lines)


def page_warnings(lines: tuple[str, ...]) -> tuple[PageWarning, ...]:
    """The messages as warnings of a page: `page_damaged` where something may be missing."""
    kept = lines[:MESSAGES_LIMIT]
    return tuple(
        PageWarning(
            reason=Reason.PAGE_DAMAGED if _LOSS.search(line) else Reason.OTHER,
            message=f"MuPDF: {line[:MESSAGE_LENGTH]}",
        )
        for line in kept
    )
