import asyncio

import aiohttp
import pytest

from emulator import Emulator, Job, JobStatus, ManualClock
from tests.emulator.conftest import Caller, HandWorker
from tests.support.waiting import until


async def test_stream_gives_each_chunk_once(caller: Caller, worker: HandWorker) -> None:
    job_id = await caller.run()
    await worker.take()
    await worker.stream(job_id, "a")
    await worker.stream(job_id, "b")
    _, answer = await caller.call("GET", f"stream/{job_id}")
    assert answer == {"status": "IN_PROGRESS", "stream": [{"output": "a"}, {"output": "b"}]}
    _, answer = await caller.call("GET", f"stream/{job_id}")
    assert answer["stream"] == []


async def test_cancelling_a_waiting_job(caller: Caller, worker: HandWorker) -> None:
    job_id, other = await caller.run(), await caller.run()
    assert await caller.call("POST", f"cancel/{job_id}") == (200, {"id": job_id, "status": "CANCELLED"})
    taken = await worker.take()
    assert taken is not None
    assert taken["id"] == other


async def test_cancelling_a_running_job_reaches_its_worker(caller: Caller, worker: HandWorker) -> None:
    job_id = await caller.run()
    await worker.take()
    stopping = asyncio.create_task(worker.stop_signals())
    await caller.call("POST", f"cancel/{job_id}")
    assert await stopping == [job_id]
    await worker.post(job_id, {"output": "too late"})
    assert await caller.status(job_id) | {"executionTime": 0} == {
        "id": job_id, "status": "CANCELLED", "delayTime": 0, "executionTime": 0, "workerId": "w1",
    }  # fmt: skip


async def test_cancelling_a_finished_job_changes_nothing(caller: Caller, worker: HandWorker) -> None:
    job_id = await caller.run()
    await worker.take()
    await worker.post(job_id, {"output": 1})
    assert (await caller.call("POST", f"cancel/{job_id}"))[1]["status"] == "COMPLETED"
    assert (await caller.status(job_id))["output"] == 1


async def test_retry_keeps_id_and_input_and_drops_the_output(caller: Caller, worker: HandWorker) -> None:
    job_id = await caller.run(page=3)
    await worker.take()
    await worker.post(job_id, {"output": {"debug": 1}, "error": "x"})
    assert await caller.call("POST", f"retry/{job_id}") == (200, {"id": job_id, "status": "IN_QUEUE"})
    assert await caller.status(job_id) == {"id": job_id, "status": "IN_QUEUE", "retries": 1}
    assert await worker.take() == {"id": job_id, "input": {"page": 3}}


async def test_only_failed_jobs_can_be_retried(caller: Caller, worker: HandWorker) -> None:
    job_id = await caller.run()
    assert (await caller.call("POST", f"retry/{job_id}"))[0] == 400
    await worker.take()
    await worker.post(job_id, {"output": 1})
    assert (await caller.call("POST", f"retry/{job_id}"))[0] == 400


async def test_purge_spares_running_jobs(caller: Caller, worker: HandWorker) -> None:
    running = await caller.run()
    await worker.take()
    waiting = [await caller.run(), await caller.run()]
    assert await caller.call("POST", "purge-queue") == (200, {"removed": 2, "status": "completed"})
    assert (await caller.status(running))["status"] == "IN_PROGRESS"
    assert {(await caller.status(job_id))["status"] for job_id in waiting} == {"CANCELLED"}


async def test_batches_hold_what_is_there(caller: Caller, worker: HandWorker) -> None:
    ids = [await caller.run() for _ in range(3)]
    assert await worker.take_batch(2) == ids[:2]
    assert await worker.take_batch(5) == ids[2:]


async def test_jobs_of_a_silent_worker_go_to_another(
    caller: Caller, worker: HandWorker, other_worker: HandWorker, clock: ManualClock
) -> None:
    job_id = await caller.run()
    await worker.take()
    await worker.ping(job_id)
    await clock.advance(59)
    await worker.ping(job_id)
    await clock.advance(59)
    assert (await caller.status(job_id))["status"] == "IN_PROGRESS"
    polling = asyncio.create_task(other_worker.take())
    await clock.advance(1)
    assert await polling == {"id": job_id, "input": {}}
    shown = await caller.status(job_id)
    assert (shown["workerId"], shown["retries"]) == ("w2", 1)

    assert await worker.post(job_id, {"output": "first"}) == 200
    assert await other_worker.post(job_id, {"output": "second"}) == 200
    assert (await caller.status(job_id))["output"] == "first"


async def test_requeued_jobs_come_first(
    caller: Caller, worker: HandWorker, other_worker: HandWorker, emulator: Emulator
) -> None:
    lost = await caller.run()
    await worker.take()
    await caller.run()
    emulator.fleet.gone(emulator.workers()[0])
    taken = await other_worker.take()
    assert taken is not None
    assert taken["id"] == lost


async def test_disconnected_worker_loses_no_job(caller: Caller, worker: HandWorker, emulator: Emulator) -> None:
    polling = asyncio.create_task(worker.take())
    await until(emulator, lambda: emulator.open_requests["job-take"] == 1)
    polling.cancel()
    await asyncio.gather(polling, return_exceptions=True)
    await until(emulator, lambda: emulator.open_requests["job-take"] == 0)
    job_id = await caller.run()
    assert (await caller.status(job_id))["status"] == "IN_QUEUE"


async def test_skipped_time_is_not_silence(caller: Caller, worker: HandWorker, emulator: Emulator) -> None:
    job_id = await caller.run()
    await worker.take()
    await worker.ping(job_id)
    await emulator.skip(500)
    assert (await caller.status(job_id))["status"] == "IN_PROGRESS"


@pytest.mark.parametrize(("hides", "status"), [(False, "COMPLETED"), (True, "IN_PROGRESS")])
async def test_late_progress(session: aiohttp.ClientSession, hides: bool, status: str) -> None:
    async with Emulator(late_progress_hides_result=hides) as emulator:
        caller, worker = Caller(emulator, session), HandWorker(emulator, session, "w1")
        job_id = await caller.run()
        await worker.take()
        await worker.post(job_id, {"output": "result"})
        await worker.post(job_id, {"status": "IN_PROGRESS", "output": "late"})
        shown = await caller.status(job_id)
        assert (shown["status"], shown["output"]) == (status, "late" if hides else "result")


async def test_in_process_answers(caller: Caller, emulator: Emulator) -> None:
    async def answer(job: Job) -> dict[str, int]:
        return {"output": job.input["n"] * 2}

    emulator.answer(answer)
    job = await emulator.wait_job(await caller.run(n=4))
    assert (job.status, job.output) == (JobStatus.COMPLETED, 8)


async def test_skipping_time_does_not_end_the_wait_for_a_job(caller: Caller, worker: HandWorker) -> None:
    waiting = asyncio.create_task(caller.emulator.wait_job(await caller.run()))
    await caller.emulator.skip(500)
    job = await worker.take()
    assert job is not None
    await worker.post(job["id"], {"output": 1})
    assert (await waiting).output == 1
