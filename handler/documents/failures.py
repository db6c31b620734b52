"""What can go wrong with one page while the document itself is fine."""

from handler.schema import Reason


class RenderFailure(Exception):
    """One page could not be rendered or cut; it becomes a `failed` page with this reason, never a lost one."""

    def __init__(self, reason: Reason, message: str) -> None:
        self.reason = reason
        self.message = message
        super().__init__(message)

    def __reduce__(self) -> tuple[type["RenderFailure"], tuple[Reason, str]]:
        return (type(self), (self.reason, self.message))
