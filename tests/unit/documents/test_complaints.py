from handler.documents.complaints import MESSAGES_LIMIT, lines_of, page_warnings, tell_of_loss
from handler.schema import Reason

MESSAGES = """PDF stream Length incorrect
premature end of data in flate filter
... repeated 2 times...
premature end of data in flate filter
syntax error: syntax error in content stream
"""


def test_each_message_counts_once() -> None:
    assert lines_of(MESSAGES) == (
        "PDF stream Length incorrect",
        "premature end of data in flate filter",
        "syntax error: syntax error in content stream",
    )
    assert lines_of("") == ()


def test_loss_is_told_from_oddity() -> None:
    assert tell_of_loss(lines_of(MESSAGES))
    assert not tell_of_loss(("bogus font ascent/descent values (0 / 0)",))
    assert [warning.reason for warning in page_warnings(lines_of(MESSAGES))] == [
        Reason.OTHER,
        Reason.PAGE_DAMAGED,
        Reason.PAGE_DAMAGED,
    ]


def test_a_flood_of_messages_is_cut() -> None:
    warnings = page_warnings(tuple(f"message {number} " + "x" * 500 for number in range(50)))
    assert len(warnings) == MESSAGES_LIMIT
    assert all(len(warning.message) < 250 for warning in warnings)
