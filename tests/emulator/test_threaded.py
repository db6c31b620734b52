import requests

from emulator import Emulator, Fault, FaultKind, Job, threaded


async def double(job: Job) -> dict[str, int]:
    return {"output": job.input["n"] * 2}


def test_callers_that_are_not_asynchronous() -> None:
    with threaded(Emulator()) as emulator:
        emulator.call(lambda e: e.answer(double))
        headers = {"Authorization": f"Bearer {emulator.api_key}"}
        answer = requests.post(f"{emulator.url}/runsync", json={"input": {"n": 4}}, headers=headers, timeout=30).json()
        assert answer["output"] == 8

        emulator.wait(lambda e: e.skip(61))
        gone = requests.get(f"{emulator.url}/status/{answer['id']}", headers=headers, timeout=30)
        assert gone.status_code == 404

        emulator.call(lambda e: e.faults.add(Fault(FaultKind.STATUS, "health", status=502)))
        assert requests.get(f"{emulator.url}/health", headers=headers, timeout=30).status_code == 502
