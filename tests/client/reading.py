"""A worker's double that reads PDFs: one region per page with the page's own text."""

import copy
import hashlib
from typing import Any

import pypdfium2
import pypdfium2.raw
from glmocr_runpod.identity import sha256

from emulator.jobs import Job
from handler.identity import content_key
from handler.job_input import parse_input
from handler.page_ranges import select_pages
from tests.client.rig import decoded
from tests.contract.golden_files import golden


class Reading:
    """Answers with what the pages say, and keeps what it was sent."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []

    async def __call__(self, job: Job) -> dict[str, Any]:
        data = self._document(job.input)
        self.sent.append(data)
        return {"output": pdf_result(job.input, data)}

    def _document(self, job_input: dict[str, Any]) -> bytes:
        if "file_base64" in job_input:
            return decoded(job_input)
        raise AssertionError(f"sent as {job_input.keys()}")


def pdf_result(job_input: dict[str, Any], data: bytes) -> dict[str, Any]:
    request = parse_input(job_input)
    pages = page_texts(data)
    output: dict[str, Any] = copy.deepcopy(golden("inline"))
    template = output["pages"][0]
    chosen = select_pages(request.pages, len(pages))
    output["pages"] = [
        {**template, "page": number, "regions": [{**template["regions"][0], "text": pages[number - 1]}]}
        for number in chosen
    ]
    output["document"] |= {
        "sha256": sha256(data),
        "size": len(data),
        "page_count": len(pages),
        "content_key": content_key(sha256(data), request),
        "filename": request.filename,
    }
    output |= {"markdown": "\n\n".join(pages[number - 1] for number in chosen) + "\n", "status": "complete"}
    output["degraded"] = {"count": 0, "items": []}
    output["artifacts"] = []
    return output


def page_texts(data: bytes) -> list[str]:
    document = pypdfium2.PdfDocument(data)
    texts = [page.get_textpage().get_text_bounded().strip() for page in document]
    document.close()
    return texts


def streams(data: bytes) -> list[str]:
    """The digest of every picture's bytes as they stand in the file."""
    document = pypdfium2.PdfDocument(data)
    found = [
        hashlib.sha256(bytes(picture.get_data(decode_simple=False))).hexdigest()
        for page in document
        for picture in page.get_objects(filter=[pypdfium2.raw.FPDF_PAGEOBJ_IMAGE])
    ]
    document.close()
    return found
