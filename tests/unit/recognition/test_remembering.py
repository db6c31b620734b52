from collections import deque

from handler.engine.api import EngineRequest
from handler.recognition.reading import Answer
from handler.recognition.remembering import RememberingAsker
from handler.schema import Reason

REQUEST = EngineRequest("Text Recognition:", b"jpeg", 100)


class Engine:
    def __init__(self, *answers: Answer) -> None:
        self.answers = deque(answers)

    async def ask(self, request: EngineRequest) -> Answer:
        return self.answers.popleft()


class Memory:
    def __init__(self, *known: Answer) -> None:
        self.known = deque(known)
        self.kept: list[Answer] = []

    def recall(self, request: EngineRequest) -> Answer | None:
        return self.known.popleft() if self.known else None

    def remember(self, request: EngineRequest, answer: Answer) -> None:
        self.kept.append(answer)


async def test_asks_only_for_what_is_not_known_and_keeps_what_is_new() -> None:
    old, new = Answer("old", "stop"), Answer("new", "stop")
    memory = Memory(old)
    asker = RememberingAsker(Engine(new), memory)
    assert [await asker.ask(REQUEST), await asker.ask(REQUEST)] == [old, new]
    assert memory.kept == [new]


async def test_a_failure_is_not_kept() -> None:
    memory = Memory()
    failure = Answer(failure=Reason.ENGINE_TIMEOUT)
    assert await RememberingAsker(Engine(failure), memory).ask(REQUEST) == failure
    assert memory.kept == []
