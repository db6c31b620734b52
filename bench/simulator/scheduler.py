"""The simulated engine's scheduler: which requests run, and how long each step takes. No I/O and no clock of its own.

It follows SGLang's policy as read and measured on 0.5.23: prefill first, in chunks; admission in order of arrival,
which reserves min(max_tokens, 4096) for a new request and 0.7 of what is left of that for every running one; when the
pool overflows all the same, the youngest request is thrown back to the queue.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

RESERVED_TOKENS = 4096
RUNNING_SHARE = 0.7
SLOTS = 64
CHUNK = 8192
CONTEXT = 32_768
AMPLE_POOL = 1 << 22


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU as three numbers. `free` answers at once: the ceiling of the client alone."""

    name: str
    prefill_tokens_per_s: float = 0.0
    step_s: float = 0.0
    step_per_request_s: float = 0.0

    @property
    def free(self) -> bool:
        """No time passes in this one."""
        return self.prefill_tokens_per_s == 0.0

    def slowed(self, times: float) -> "Gpu":
        """The same GPU in slow motion."""
        return Gpu(self.name, self.prefill_tokens_per_s / times, self.step_s * times, self.step_per_request_s * times)


GPUS = {
    gpu.name: gpu for gpu in (Gpu("G0"), Gpu("G1", 20_000.0, 0.008, 0.000_05), Gpu("G2", 100_000.0, 0.003, 0.000_03))
}


@dataclass(slots=True, eq=False)
class Request:
    """One region on its way through the engine. `answer_tokens` is what its whole text takes."""

    number: int
    prompt_tokens: int
    answer_tokens: int
    max_tokens: int
    arrived: float = 0.0
    to_prefill: int = 0
    produced: int = 0
    finished: float = 0.0

    def __post_init__(self) -> None:
        self.to_prefill = self.prompt_tokens

    @property
    def target(self) -> int:
        """Tokens after which it ends."""
        return max(1, min(self.answer_tokens, self.max_tokens))

    @property
    def complete(self) -> bool:
        """Whether the budget holds the whole text."""
        return self.answer_tokens <= self.max_tokens

    @property
    def held(self) -> int:
        """KV tokens it occupies now."""
        return self.prompt_tokens - self.to_prefill + self.produced

    @property
    def reserve(self) -> int:
        """Tokens that admission expects it still to need."""
        return min(self.max_tokens - self.produced, RESERVED_TOKENS)


@dataclass(slots=True)
class Scheduler:
    """Steps of the engine: `begin` at a moment, wait for the duration it returns, then `end`."""

    gpu: Gpu
    slots: int = SLOTS
    pool: int = AMPLE_POOL
    chunk: int = CHUNK
    queue: deque[Request] = field(default_factory=deque)
    running: list[Request] = field(default_factory=list)
    retractions: int = 0
    _prefilling: list[tuple[Request, int]] = field(default_factory=list)

    def begin(self) -> float | None:
        """Admit, choose the next step and return its duration in seconds; None when there is nothing to do."""
        self._admit()
        if not self.running:
            return None
        self._prefilling = self._chunk()
        if self._prefilling:
            return sum(tokens for _, tokens in self._prefilling) / self.gpu.prefill_tokens_per_s
        self._make_room()
        return self.gpu.step_s + self.gpu.step_per_request_s * len(self.running)

    def end(self) -> list[Request]:
        """Account for the step that `begin` chose; returns the requests it finished."""
        stepped: Iterable[Request] = self.running
        if self._prefilling:
            for request, tokens in self._prefilling:
                request.to_prefill -= tokens
            stepped = [request for request, _ in self._prefilling if request.to_prefill == 0]
            self._prefilling = []
        done = []
        for request in stepped:
            request.produced += 1
            if request.produced >= request.target:
                done.append(request)
        if done:
            gone = set(map(id, done))
            self.running = [request for request in self.running if id(request) not in gone]
        return done

    def cancel(self, number: int) -> None:
        """Forget a request whose client has gone."""
        self.queue = deque(request for request in self.queue if request.number != number)
        self.running = [request for request in self.running if request.number != number]
        self._prefilling = [(request, tokens) for request, tokens in self._prefilling if request.number != number]

    @property
    def used(self) -> int:
        """KV tokens in use."""
        return sum(request.held for request in self.running)

    def _admit(self) -> None:
        if not self.queue or len(self.running) >= self.slots:
            return
        left = self.pool - sum(
            r.held + r.to_prefill + (r.reserve * RUNNING_SHARE if r.to_prefill == 0 else r.reserve)
            for r in self.running
        )
        while self.queue and len(self.running) < self.slots:
            need = self.queue[0].to_prefill + self.queue[0].reserve
            if need > left and self.running:
                return
            left -= need
            self.running.append(self.queue.popleft())

    def _chunk(self) -> list[tuple[Request, int]]:
        left, parts = self.chunk, []
        for request in self.running:
            if left and request.to_prefill:
                tokens = min(left, request.to_prefill)
                parts.append((request, tokens))
                left -= tokens
        return parts

    def _make_room(self) -> None:
        while len(self.running) > 1 and self.used + len(self.running) > self.pool:
            request = self.running.pop()
            request.to_prefill = request.prompt_tokens
            request.produced = 0
            self.queue.appendleft(request)
            self.retractions += 1


def ideal_makespan(gpu: Gpu, requests: Iterable[Request], *, slots: int = SLOTS, pool: int = AMPLE_POOL) -> float:
    """Seconds the engine takes for the same requests, all queued at the start in this order; 0 on a free GPU."""
    scheduler = Scheduler(gpu, slots=slots, pool=pool)
    scheduler.queue.extend(Request(r.number, r.prompt_tokens, r.answer_tokens, r.max_tokens) for r in requests)
    if gpu.free:
        return 0.0
    total = 0.0
    while (duration := scheduler.begin()) is not None:
        total += duration
        scheduler.end()
    return total
