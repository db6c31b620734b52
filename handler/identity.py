"""What makes two jobs the same work: the content key that worker and client both compute."""

import hashlib
import json

from handler.page_ranges import canonical
from handler.schema import CONTRACT_VERSION, RESULT_OPTIONS, JobInput


def canonical_options(job: JobInput) -> bytes:
    """The options that change the result, defaults filled in, as canonical JSON (sorted keys, no spaces, UTF-8)."""
    options = job.model_dump(mode="json", include=set(RESULT_OPTIONS))
    options["formats"] = sorted(set(options["formats"]))
    options["pages"] = canonical(job.pages)
    return json.dumps(options, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def content_key(document_sha256: str, job: JobInput) -> str:
    """sha256 over the document's sha256 (of its bytes after unpacking), its options and the contract version."""
    parts = (document_sha256.encode(), canonical_options(job), CONTRACT_VERSION.encode())
    return hashlib.sha256(b"\n".join(parts)).hexdigest()
