"""What makes two submissions the same work. The worker computes the same content key from its own side."""

import hashlib
import json

from glmocr_runpod import pages
from glmocr_runpod.contract import CONTRACT_VERSION, Options

RESULT_OPTIONS = ("pages", "formats", "dpi", "max_tokens", "furniture", "read_figures")
"""The options that change the result and so belong to the content key."""


def sha256(data: bytes) -> str:
    """Hex digest of `data`."""
    return hashlib.sha256(data).hexdigest()


def content_key(document_sha256: str, options: Options) -> str:
    """sha256 over the document's sha256 (of its bytes before any packing), its options and the contract version."""
    chosen = {name: getattr(options, name) for name in RESULT_OPTIONS}
    chosen["formats"] = sorted(set(options.formats))
    chosen["pages"] = pages.canonical(options.pages)
    canonical = json.dumps(chosen, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return sha256("\n".join((document_sha256, canonical, CONTRACT_VERSION)).encode())


def job_key(api_url: str, endpoint_id: str, content: str) -> str:
    """Under which the ledger keeps one job: the same content on another endpoint is another job."""
    return sha256("\n".join((api_url, endpoint_id, content)).encode())
