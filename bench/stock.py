"""glmocr 0.1.5 as it is published, with its layout model replaced. One process; started by the driver."""

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.conversation import Channel, Done, Task
from bench.detector import KnownRegions, stock_detector
from bench.threads import ThreadClock


def open_pipeline(port: int, max_workers: int, detector: Any) -> Any:
    """The pipeline in self-hosted mode with its packaged configuration, but for address and `max_workers`."""
    from glmocr.config import load_config
    from glmocr.pipeline.pipeline import Pipeline

    config = load_config(mode="selfhosted").pipeline
    config.ocr_api.api_host = "127.0.0.1"
    config.ocr_api.api_port = port
    config.max_workers = max_workers
    pipeline = Pipeline(config, layout_detector=detector)
    pipeline.start()
    return pipeline


def read(pipeline: Any, document: Path) -> Sequence[Sequence[dict[str, Any]]]:
    """One document, after formatting; returns its pages of raw regions."""
    url = {"type": "image_url", "image_url": {"url": f"file://{document}"}}
    [result] = pipeline.process({"messages": [{"role": "user", "content": [url]}]})
    pages: Sequence[Sequence[dict[str, Any]]] = result.raw_json_result
    return pages


def perform(pipeline: Any, task: Task, clock: ThreadClock) -> Done:
    """The documents one after another: a pipeline reads one at a time."""
    clock.restart()
    started = time.monotonic()
    pages = [page for document in task.paths for page in read(pipeline, document)]
    ended = time.monotonic()
    regions = [region for page in pages for region in page if region["label"] != "image"]
    texts = [region["content"] for region in regions if region["content"]]
    lost = len(regions) - len(texts)
    notes: dict[str, object] = {"thread_cpu_s": clock.seconds()}
    return Done(started, ended, len(pages), len(texts), sum(map(len, texts)), lost, notes)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--manifest", type=Path, required=True)
    parser.add_argument("--layout-s", type=float, required=True)
    parser.add_argument("--max-workers", type=int, default=128)
    args = parser.parse_args()
    channel = Channel()
    detector = stock_detector(KnownRegions(args.manifest, args.layout_s))
    pipeline = open_pipeline(args.port, args.max_workers, detector)
    clock = ThreadClock()
    channel.ready()
    for task in channel.tasks():
        channel.report(perform(pipeline, task, clock))
    pipeline.stop()


if __name__ == "__main__":
    main()
