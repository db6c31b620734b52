"""One document: divided into as many jobs as it needs, read, and put together again. Flows only."""

from dataclasses import dataclass

from glmocr_runpod.contract import Options
from glmocr_runpod.document import Document
from glmocr_runpod.effects import Flow
from glmocr_runpod.errors import TooLarge
from glmocr_runpod.identity import content_key, job_key
from glmocr_runpod.jobs import Desk, Job, run_job
from glmocr_runpod.protocol import RUN_BODY_LIMIT, inline, run_body
from glmocr_runpod.schedule import policy
from glmocr_runpod.sources import Source


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Which endpoint a document goes to."""

    api_url: str
    endpoint_id: str


def read_document(desk: Desk, endpoint: Endpoint, source: Source, options: Options) -> Flow[Document]:
    """The document's result. Raises a `ClientError`."""
    begun = desk.time.steady()
    content = content_key(source.digest, options)
    job_input = (inline(source.data) if source.data is not None else {"file_url": source.url}) | options.wire()
    job_input["filename"] = source.name
    if len(run_body(job_input, {})) > RUN_BODY_LIMIT - 1000:
        raise TooLarge
    job = Job(
        key=job_key(endpoint.api_url, endpoint.endpoint_id, content),
        content_key=content,
        name=source.name,
        policy=policy(None),
        body=lambda: job_input,
    )
    data = yield from run_job(desk, job)
    return Document.from_json(source.name, data, desk.time.steady() - begun)
