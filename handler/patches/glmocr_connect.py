"""`OCRClient.connect` must not speak to anybody.

In 0.1.1-0.1.5 it posts a ten-token "hello", sleeps 10 s between tries, and takes a 401 for a time-out. The worker has
its own client and its own readiness check, so this one has nothing to do.
"""

from handler.patches.patch import Patch

NETWORK_NAMES = {"socket", "requests"}


def needed() -> bool:
    """Whether the method still names a network module."""
    from glmocr.ocr_client import OCRClient

    return bool(NETWORK_NAMES & set(OCRClient.connect.__code__.co_names))


def apply() -> None:
    """Replace it by nothing."""
    from glmocr.ocr_client import OCRClient

    def connect(self: OCRClient) -> None:
        """The worker has already waited for the engine."""

    OCRClient.connect = connect


def verify() -> bool:
    """Whether a client without any address connects at once."""
    from glmocr.ocr_client import OCRClient

    OCRClient.connect(object.__new__(OCRClient))
    return not needed()


PATCH = Patch(
    name="glmocr_connect",
    target="glmocr",
    why="OCRClient.connect asks a server for text and sleeps 10 s between tries",
    needed=needed,
    apply=apply,
    verify=verify,
)
