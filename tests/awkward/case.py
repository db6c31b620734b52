"""What a case is: a file, the job around it, and what its ledger must say."""

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from handler.schema import ErrorCode


@dataclass(frozen=True)
class Case:
    """One awkward file.

    `expected` is an error code, or one word per page: `ok`, `blank`, `failed:page_damaged`, with the reasons of
    warnings that must be there (`ok+page_scaled_down`) and the angle it must be read at (`ok@90`).
    """

    name: str
    build: Callable[[], bytes] = field(repr=False)
    expected: tuple[str, ...] | ErrorCode
    options: dict[str, Any] = field(default_factory=dict)

    def job(self) -> dict[str, Any]:
        """The job's input."""
        return {"file_base64": base64.b64encode(self.build()).decode(), "dpi": 100, **self.options}


def found(answer: dict[str, Any]) -> tuple[str, ...] | str:
    """The ledger of an answer in the words of `expected`, with every warning's reason."""
    if "error" in answer and not answer.get("pages"):
        return str(json.loads(answer["error"])["code"])
    return tuple(_page(page) for page in answer["pages"])


def agrees(case: Case, answer: dict[str, Any]) -> bool:
    """Whether the answer's ledger is the expected one; further warnings are allowed where some are expected."""
    actual = found(answer)
    if isinstance(case.expected, str) or isinstance(actual, str):
        return actual == case.expected
    return len(actual) == len(case.expected) and all(map(_agrees, case.expected, actual))


def _agrees(expected: str, actual: str) -> bool:
    wanted, is_there = (set(word.split("+")[1:]) for word in (expected, actual))
    same_status = expected.split("+")[0] == actual.split("+")[0]
    return same_status and (wanted <= is_there if wanted else not is_there)


def _page(page: dict[str, Any]) -> str:
    status = page["status"]
    if page["reason"]:
        status += f":{page['reason']}"
    if page["angle"]:
        status += f"@{page['angle']}"
    reasons = sorted({warning["reason"] for warning in page["warnings"]} - {"page_turned"})
    return "+".join([status, *reasons])
