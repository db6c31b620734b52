"""The one error tree.

A class has a stable wire `code`, a docstring that is its default message, and two facts: may the caller
retry, and is this worker still fit to serve. The boundary in `worker.py` turns an error into the wire form;
nothing else does.
"""

from collections.abc import Mapping
from typing import ClassVar

from handler.schema import ErrorCode, ErrorInfo, JsonValue


class WorkerError(Exception):
    """The worker failed in a way it did not foresee; `debug` tells more. Send the job again; report what repeats."""

    code: ClassVar[ErrorCode] = ErrorCode.INTERNAL_ERROR
    retryable: ClassVar[bool] = False
    worker_unfit: ClassVar[bool] = False

    def __init__(self, message: str | None = None, **details: JsonValue) -> None:
        self.message = message or " ".join((type(self).__doc__ or "").split())
        self.details: Mapping[str, JsonValue] = details
        super().__init__(self.message)

    def info(self) -> ErrorInfo:
        """The error as it travels to the caller."""
        return ErrorInfo(code=self.code, message=self.message, retryable=self.retryable, details=dict(self.details))


class BootError(WorkerError):
    """The worker cannot start; the message names what is wrong and what to set."""

    code = ErrorCode.BOOT_FAILED


class SettingsError(BootError):
    """An environment variable has a value that cannot be used."""


class GateError(BootError):
    """A boot gate found that this worker would not serve correctly."""


class PatchError(BootError):
    """A third-party package is not in the state this worker was tested with."""


class ModelError(BootError):
    """A model's files are missing or not the ones the manifest names."""


class InputError(WorkerError):
    """The job's input is not valid; the message names the key and what it accepts."""

    code = ErrorCode.INVALID_INPUT


class UnknownKey(InputError):
    """The input has a key that the contract does not know; the message names the nearest one."""

    code = ErrorCode.UNKNOWN_KEY


class NoSource(InputError):
    """The input names no document: give exactly one of file_base64, file_url, volume_path, s3_uri."""

    code = ErrorCode.NO_SOURCE


class SeveralSources(InputError):
    """The input names more than one document: give exactly one source."""

    code = ErrorCode.SEVERAL_SOURCES


class InvalidBase64(InputError):
    """file_base64 is not standard base64."""

    code = ErrorCode.INVALID_BASE64


class EmptyFile(InputError):
    """The document has no bytes; check how it was read or uploaded."""

    code = ErrorCode.EMPTY_FILE


class UnsupportedFormat(InputError):
    """The document, or the output asked for, is of a kind this worker does not handle; the message
    says which it accepts."""

    code = ErrorCode.UNSUPPORTED_FORMAT


class ArchiveRefused(InputError):
    """The archive must hold exactly one document and stay within the limits; send the document itself."""

    code = ErrorCode.ARCHIVE_REFUSED


class DocumentTooLarge(InputError):
    """The document is larger than this worker accepts (`MAX_DOCUMENT_BYTES`)."""

    code = ErrorCode.DOCUMENT_TOO_LARGE


class TooManyPages(InputError):
    """The document has more pages than this worker accepts; ask for fewer with `pages`."""

    code = ErrorCode.TOO_MANY_PAGES


class PagesOutOfRange(InputError):
    """`pages` selects no page of this document; `details.page_count` says how many it has."""

    code = ErrorCode.PAGES_OUT_OF_RANGE


class PasswordRequired(InputError):
    """The document is encrypted; give its `password`."""

    code = ErrorCode.PASSWORD_REQUIRED


class PasswordWrong(InputError):
    """The document is encrypted and the `password` given does not open it."""

    code = ErrorCode.PASSWORD_WRONG


class DocumentUnreadable(InputError):
    """No engine can open the document; if a viewer can, print it to a new PDF."""

    code = ErrorCode.DOCUMENT_UNREADABLE


class UrlRefused(InputError):
    """The worker does not fetch from this address; the message says what is wrong with it."""

    code = ErrorCode.URL_REFUSED


class PathRefused(InputError):
    """The path is outside what jobs may read: files below the network volume, not through links, not our own."""

    code = ErrorCode.PATH_REFUSED


class SourceNotFound(InputError):
    """There is no document at the place named; check the address, path or key."""

    code = ErrorCode.SOURCE_NOT_FOUND


class SourceUnavailable(WorkerError):
    """The document could not be fetched from its place just now; send the job again later."""

    code = ErrorCode.SOURCE_UNAVAILABLE
    retryable = True


class NoPageReadable(WorkerError):
    """No page of the document could be read; `details.reasons` and `output.pages` say why."""

    code = ErrorCode.NO_PAGE_READABLE


class ResultTooLarge(WorkerError):
    """The result exceeds what the platform delivers; ask for transport volume or s3, or for fewer pages."""

    code = ErrorCode.RESULT_TOO_LARGE


class StorageUnavailable(WorkerError):
    """The result could not be written to the storage asked for; send the job again, or with another transport."""

    code = ErrorCode.STORAGE_UNAVAILABLE
    retryable = True


class EngineUnavailable(WorkerError):
    """The text engine of this worker died or does not answer; another worker can take the job."""

    code = ErrorCode.ENGINE_UNAVAILABLE
    retryable = True
    worker_unfit = True
