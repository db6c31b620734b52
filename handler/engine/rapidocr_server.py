"""The embedded engine: RapidOCR behind SGLang's HTTP interface, on the CPU, in a process of its own.

    python -m handler.engine.rapidocr_server --host 127.0.0.1 --port 5002 --api-key-env ENGINE_API_KEY

The worker speaks to it exactly as to SGLang. It reads one picture per request; of the prompt it heeds only whether a
table is asked for.
"""

import argparse
import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from http import HTTPStatus
from importlib.metadata import version
from threading import Event

import cv2
import numpy as np
from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from pydantic import ValidationError

from handler.engine.rapidocr_answers import html_table, plain_text, printed_rules
from handler.engine.rapidocr_metrics import Load, Metrics
from handler.engine.rapidocr_reader import MODEL_NAME, Reader
from handler.engine.rapidocr_wire import (
    PROMPT_OVERHEAD,
    BadRequest,
    ChatRequest,
    check_context,
    completion,
    cut_to_tokens,
    error,
    image_tokens,
    undecodable,
)
from handler.layout.ink import Picture
from handler.settings import secret_from

CONTEXT_LENGTH = 32768
POOL_TOKENS = 4 * CONTEXT_LENGTH
LONGEST_RATIO = 200
QUEUE_LIMIT = 1024
BODY_LIMIT = 64 * 1024 * 1024
STOP_WITHIN_S = 1.0
OPEN_PATHS = frozenset({"/health", "/health_generate", "/metrics"})
TABLE_PROMPT = "Table Recognition"

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class Options:
    """How the server was started."""

    host: str
    port: int
    api_key: str | None
    model: str
    threads: int


@dataclass(frozen=True, slots=True)
class Ticket:
    """One request in work."""

    prompt_tokens: int
    given_up: Event = field(default_factory=Event)


@dataclass
class Service:
    """The models, the threads that run them, and the requests they are given."""

    options: Options
    pool: ThreadPoolExecutor
    metrics: Metrics
    reader: Reader | None = None
    work: dict[Future[str], Ticket] = field(default_factory=dict)
    """Requests accepted and not answered yet."""

    def load(self) -> Load:
        """What is running and waiting now."""
        running = [ticket.prompt_tokens for future, ticket in self.work.items() if future.running()]
        return Load(len(running), len(self.work) - len(running), sum(running), POOL_TOKENS)

    async def answer(self, picture: Picture, prompt: str, tokens: int) -> str:
        """The text of a picture. Cancelling takes the request out of the queue, or ends it soon when it runs."""
        if self.reader is None or len(self.work) >= QUEUE_LIMIT:
            raise web.HTTPServiceUnavailable
        ticket = Ticket(tokens)
        future = self.pool.submit(read, self.reader, picture, prompt, ticket.given_up)
        self.work[future] = ticket
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            ticket.given_up.set()
            self.metrics.aborted.inc()
            raise
        finally:
            del self.work[future]


SERVICE = web.AppKey("service", Service)


def read(reader: Reader, picture: Picture, prompt: str, given_up: Event) -> str:
    """What is printed on a picture: an HTML table when the prompt asks for one, else lines in reading order."""
    if prompt.startswith(TABLE_PROMPT):
        rules = printed_rules(picture)
        return html_table(reader.lines(picture, rules.xs, given_up), rules)
    return plain_text(reader.lines(picture, given_up=given_up))


def decoded(data: bytes) -> Picture:
    """The picture, BGR. Raises `BadRequest` for anything SGLang would refuse."""
    picture = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR) if data else None
    if picture is None:
        raise undecodable("cannot identify image file")
    height, width = picture.shape[:2]
    ratio = max(height, width) / min(height, width)
    if ratio > LONGEST_RATIO:
        raise BadRequest(f"absolute aspect ratio must be smaller than {LONGEST_RATIO}, got {ratio:.1f}")
    return np.asarray(picture, np.uint8)


async def chat(request: web.Request) -> web.Response:
    """POST /v1/chat/completions."""
    service = request.app[SERVICE]
    asked = ChatRequest.model_validate_json(await request.read())
    picture = decoded(asked.picture())
    prompt_tokens = image_tokens(picture.shape[1], picture.shape[0]) + PROMPT_OVERHEAD
    budget = asked.budget()
    check_context(prompt_tokens, budget, CONTEXT_LENGTH)
    text = await service.answer(picture, asked.prompt, prompt_tokens)
    limit = CONTEXT_LENGTH - prompt_tokens if budget is None else budget
    text, tokens, cut = cut_to_tokens(text, limit)
    service.metrics.finished(prompt_tokens, tokens)
    return web.json_response(completion(asked.model, text, prompt_tokens, tokens, cut))


async def health(request: web.Request) -> web.Response:
    """GET /health: 200 once the models are loaded."""
    ready = request.app[SERVICE].reader is not None
    return web.Response(status=HTTPStatus.OK if ready else HTTPStatus.SERVICE_UNAVAILABLE)


async def models(request: web.Request) -> web.Response:
    """GET /v1/models."""
    name = request.app[SERVICE].options.model
    card = {"id": name, "object": "model", "owned_by": "rapidocr", "root": name, "max_model_len": CONTEXT_LENGTH}
    return web.json_response({"object": "list", "data": [card]})


async def server_info(request: web.Request) -> web.Response:
    """GET /server_info."""
    service = request.app[SERVICE]
    return web.json_response(
        {
            "version": version("rapidocr"),
            "status": "ready" if service.reader else "starting",
            "model_path": "rapidocr",
            "served_model_name": service.options.model,
            "context_length": CONTEXT_LENGTH,
            "max_total_num_tokens": POOL_TOKENS,
            "max_req_input_len": CONTEXT_LENGTH - 6,
            "max_running_requests": service.options.threads,
            "internal_states": [
                {
                    "memory_usage": {"token_capacity": POOL_TOKENS},
                    "effective_max_running_requests_per_dp": service.options.threads,
                }
            ],
        }
    )


async def loads(request: web.Request) -> web.Response:
    """GET /v1/loads."""
    service = request.app[SERVICE]
    load = service.load()
    entry = {
        "dp_rank": 0,
        "num_running_reqs": load.running,
        "num_waiting_reqs": load.queued,
        "num_used_tokens": load.tokens,
        "max_total_num_tokens": POOL_TOKENS,
        "max_running_requests": service.options.threads,
        "token_usage": load.token_usage,
    }
    return web.json_response({"version": version("rapidocr"), "loads": [entry]})


async def metrics(request: web.Request) -> web.Response:
    """GET /metrics."""
    body = generate_latest(request.app[SERVICE].metrics.registry)
    return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_LATEST})


@web.middleware
async def checked(request: web.Request, handler: Handler) -> web.StreamResponse:
    """The bearer key, and refusals in SGLang's words."""
    service = request.app[SERVICE]
    key = service.options.api_key
    if key and request.path not in OPEN_PATHS and request.headers.get("Authorization") != f"Bearer {key}":
        return web.json_response({"error": "Unauthorized"}, status=HTTPStatus.UNAUTHORIZED)
    try:
        return await handler(request)
    except (BadRequest, ValidationError) as refusal:
        return web.json_response(error(HTTPStatus.BAD_REQUEST, str(refusal)), status=HTTPStatus.BAD_REQUEST)
    except web.HTTPNotFound:
        return web.json_response({"detail": "Not Found"}, status=HTTPStatus.NOT_FOUND)
    except web.HTTPServiceUnavailable as full:
        body = error(full.status, "The server is starting or its request queue is full.", "ServiceUnavailableError")
        return web.json_response(body, status=full.status)


async def _models_loaded(app: web.Application) -> AsyncIterator[None]:
    """Load in the background, so that the port answers from the start; a failure ends the process."""
    service = app[SERVICE]

    async def load() -> None:
        service.reader = await asyncio.to_thread(Reader)

    task = asyncio.create_task(load())
    task.add_done_callback(_end_on_failure)
    yield
    task.cancel()
    service.pool.shutdown(wait=False, cancel_futures=True)


def _end_on_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (failure := task.exception()):
        raise SystemExit(f"the models could not be loaded: {failure}")


def application(options: Options) -> web.Application:
    """The server, not started yet."""
    app = web.Application(middlewares=[checked], client_max_size=BODY_LIMIT)
    pool = ThreadPoolExecutor(options.threads, thread_name_prefix="read")
    service = Service(options, pool, Metrics(options.model, CONTEXT_LENGTH, lambda: service.load()))
    app[SERVICE] = service
    app.cleanup_ctx.append(_models_loaded)
    app.add_routes(
        [
            web.post("/v1/chat/completions", chat),
            web.get("/health", health),
            web.get("/health_generate", health),
            web.get("/v1/models", models),
            web.get("/server_info", server_info),
            web.get("/get_server_info", server_info),
            web.get("/v1/loads", loads),
            web.get("/metrics", metrics),
        ]
    )
    return app


def options_from(argv: list[str] | None = None) -> Options:
    """The command line."""
    parser = argparse.ArgumentParser(description="RapidOCR behind SGLang's HTTP interface.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--api-key-env", metavar="NAME", help="environment variable that holds the bearer key")
    parser.add_argument("--served-model-name", default=MODEL_NAME)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="requests read at once")
    args = parser.parse_args(argv)
    key = secret_from(args.api_key_env) if args.api_key_env else None
    return Options(args.host, args.port, key, args.served_model_name, args.threads)


def main() -> None:
    """Serve until SIGTERM or SIGINT."""
    options = options_from()
    web.run_app(
        application(options),
        host=options.host,
        port=options.port,
        handler_cancellation=True,
        shutdown_timeout=STOP_WITHIN_S,
        access_log=None,
        print=None,
    )


if __name__ == "__main__":
    main()
