"""What the image adds to its base, as CycloneDX: python -m scripts.make_sbom OUT

Made from what the image is made from: the base's name, the locked packages with their hashes, the models with theirs.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

from cyclonedx.contrib.hash.factories import HashTypeFactory
from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import DisjunctiveLicense
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL
from pip_requirements_parser import RequirementsFile

from handler import __version__
from handler.models.manifest import load_manifest

ROOT = Path(__file__).resolve().parents[1]
LOCKS = ("image.txt", "base.txt")
IMAGE_ENVIRONMENT = {"sys_platform": "linux", "platform_system": "Linux", "python_full_version": "3.12.0"}


def _base() -> Component:
    lines = (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines()
    name, _, version = next(line for line in lines if line.startswith("ARG BASE_IMAGE="))[15:].rpartition(":")
    purl = PackageURL.from_string(f"pkg:docker/{name}@{version}")
    return Component(name=name, version=version, type=ComponentType.CONTAINER, purl=purl, bom_ref=str(purl))


def _packages() -> Iterator[Component]:
    for lock in LOCKS:
        for pin in RequirementsFile.from_file(str(ROOT / "requirements" / lock)).requirements:
            if pin.marker is None or pin.marker.evaluate(IMAGE_ENVIRONMENT):
                (version,) = (specifier.version for specifier in pin.specifier)
                purl = PackageURL.from_string(f"pkg:pypi/{pin.name}@{version}")
                hashes = [HashTypeFactory().from_composite_str(option) for option in pin.hash_options or ()]
                yield Component(name=pin.name, version=version, purl=purl, bom_ref=str(purl), hashes=hashes)


def _models() -> Iterator[Component]:
    for entry in load_manifest().models.values():
        purl = PackageURL.from_string(f"pkg:huggingface/{entry.repo}@{entry.revision}")
        model = Component(
            name=entry.repo,
            version=entry.revision,
            type=ComponentType.MACHINE_LEARNING_MODEL,
            purl=purl,
            bom_ref=str(purl),
            licenses=[DisjunctiveLicense(id=entry.licence)],
        )
        for file in entry.files:
            hashes = [HashType(alg=HashAlgorithm.SHA_256, content=file.sha256)] if file.sha256 else []
            part = Component(name=file.path, type=ComponentType.FILE, bom_ref=f"{purl}#{file.path}", hashes=hashes)
            model.components.add(part)
        yield model


def sbom() -> Bom:
    """The bill of materials."""
    bom = Bom(components=[_base(), *_packages(), *_models()])
    image = Component(name="glmocr-worker", version=__version__, type=ComponentType.CONTAINER, bom_ref="glmocr-worker")
    bom.metadata.component = image
    bom.register_dependency(image, bom.components)
    return bom


def main() -> None:
    """Write it."""
    out = Path(sys.argv[1])
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(JsonV1Dot6(sbom()).output_as_string(indent=2) + "\n", encoding="utf-8")
    print(out)


if __name__ == "__main__":
    main()
