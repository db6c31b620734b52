"""Short ways to write pages and regions of a result."""

from typing import Any

from handler.schema import Label, PageResult, PageStatus, Reason, RegionResult, RegionStatus


def region(text: str = "text", label: Label = Label.TEXT, index: int = 0, **fields: Any) -> RegionResult:
    """A region; `ok` unless told otherwise."""
    given = {"bbox": (100, 100, 900, 200), "bbox_px": (10, 10, 90, 20), "status": RegionStatus.OK, **fields}
    return RegionResult(index=index, label=label, text=text, **given)


def page(*regions: RegionResult, number: int = 1, status: PageStatus = PageStatus.OK, **fields: Any) -> PageResult:
    """A page with these regions, numbered in order."""
    numbered = tuple(r.model_copy(update={"index": index}) for index, r in enumerate(regions))
    return PageResult(page=number, status=status, regions=numbered, **fields)


def truncated(text: str = "half", reason: Reason = Reason.TOKEN_LIMIT) -> RegionResult:
    """A region that was cut short."""
    return region(text, status=RegionStatus.TRUNCATED, reason=reason, message="cut short")


def failed(reason: Reason = Reason.ENGINE_ERROR) -> RegionResult:
    """A region that could not be read."""
    return region("", status=RegionStatus.FAILED, reason=reason, message="503")


def skipped(text: str = "", reason: Reason = Reason.FIGURE_NOT_READ) -> RegionResult:
    """A region that was left unread, or whose text is quarantined."""
    return region(text, Label.IMAGE, status=RegionStatus.SKIPPED, reason=reason, message="left out")
