import json

from cyclonedx.output.json import JsonV1Dot6

from handler.models.manifest import load_manifest
from scripts.make_sbom import sbom


def test_it_names_the_base_every_locked_package_and_every_model_file() -> None:
    made = json.loads(JsonV1Dot6(sbom()).output_as_string())
    components = {component["purl"]: component for component in made["components"]}

    assert made["bomFormat"] == "CycloneDX"
    assert any(purl.startswith("pkg:docker/lmsysorg/sglang@v0.5.17") for purl in components)
    assert components["pkg:pypi/runpod@1.12.0"]["hashes"]
    assert not any(purl.startswith(("pkg:pypi/opencv-python@", "pkg:pypi/pymupdf4llm@")) for purl in components)
    for entry in load_manifest().models.values():
        model = components[f"pkg:huggingface/{entry.repo}@{entry.revision}"]
        named = {part["name"]: [one["content"] for one in part.get("hashes", [])] for part in model["components"]}
        assert named == {file.path: [file.sha256] if file.sha256 else [] for file in entry.files}
