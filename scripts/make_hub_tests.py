"""Write .runpod/tests.json with a page that needs no network: python -m scripts.make_hub_tests"""

import base64
import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
TESTS = ROOT / ".runpod" / "tests.json"
PAGE = ROOT / "examples" / "agreement.pdf"


def hub_tests() -> dict[str, Any]:
    """What RunPod's Hub runs after building the image."""
    page = base64.b64encode(PAGE.read_bytes()).decode()
    return {
        "tests": [
            {"name": "probe", "input": {"probe": True}, "timeout": 600_000},
            {
                "name": "first_page",
                "input": {"file_base64": page, "filename": PAGE.name, "pages": "1", "checkpoint": False},
                "timeout": 120_000,
            },
        ],
        "config": {
            "gpuTypeId": "NVIDIA GeForce RTX 4090",
            "gpuCount": 1,
            "env": [{"key": "GLMOCR_ENGINE", "value": "sglang"}],
            "allowedCudaVersions": ["12.8", "12.9", "13.0"],
        },
    }


def main() -> None:
    """Write it."""
    TESTS.write_text(json.dumps(hub_tests(), indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
