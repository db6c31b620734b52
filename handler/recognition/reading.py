"""What reading one region brought."""

from dataclasses import dataclass

from handler.schema import Reason, RegionStatus


@dataclass(frozen=True, slots=True)
class Reading:
    """The text of one region and what is known about it. `text` is exactly what the engine said."""

    text: str
    status: RegionStatus
    finish_reason: str | None = None
    reason: Reason | None = None
    message: str | None = None
    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
