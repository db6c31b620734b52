"""How each of our own engines is started: its command line for a port, and its environment."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from handler.engine.api import EngineName
from handler.engine.gpu import visible_gpus
from handler.engine.server import LOOPBACK
from handler.engine.sglang import Profile, choose_profile, ran_out_of_memory, smaller
from handler.settings import Settings

GLM_OCR = "glm-ocr"
"""Its name in models.manifest.yaml."""
KEY_VARIABLE = "ENGINE_API_KEY"
"""How a child learns the bearer key of this boot; never on a command line, where anyone can read it."""
OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}


@dataclass(frozen=True, slots=True)
class Command:
    """One way to start an engine. `step_down` makes the one that is tried once after an out-of-memory start."""

    argv: Callable[[int], tuple[str, ...]]
    env: Mapping[str, str] = field(default_factory=dict)
    profile: str | None = None
    needs_gpu: bool = False
    model: str | None = None
    """What requests must call the model where that is not ENGINE_MODEL."""
    step_down: "Callable[[], Command] | None" = None

    def can_step_down(self, last_lines: Sequence[str]) -> bool:
        """Whether these lines of a dead engine call for it."""
        return self.step_down is not None and ran_out_of_memory(last_lines)

    def stepped_down(self) -> "Command":
        """The smaller command, which has no smaller one itself."""
        assert self.step_down is not None
        return replace(self.step_down(), step_down=None)


def command_for(settings: Settings) -> Command:
    """The command of the engine the settings name. Raises `GateError`, `ModelError` or `SettingsError`."""
    match settings.glmocr_engine:
        case EngineName.RAPIDOCR:
            return Command(_rapidocr_argv)
        case EngineName.TRANSFORMERS:
            return _transformers(settings.sglang_python, _weights(settings))
        case EngineName.SGLANG:
            gpus = visible_gpus(settings.cuda_visible_devices)
            profile = choose_profile(settings.sglang_profile, gpus, settings.engine_model)
            return _sglang(settings, profile, _weights(settings))
        case EngineName.EXTERNAL:
            raise ValueError("an external engine is not started")


def _weights(settings: Settings) -> Path:
    # Imported here, since the embedded engine need not wait for what downloads models.
    from handler.models.resolve import resolve

    return resolve(GLM_OCR, settings)


def _rapidocr_argv(port: int) -> tuple[str, ...]:
    serve = (sys.executable, "-m", "handler.engine.rapidocr_server", "--host", LOOPBACK, "--port", str(port))
    return (*serve, "--api-key-env", KEY_VARIABLE)


def _sglang(settings: Settings, profile: Profile, model_dir: Path) -> Command:
    def argv(port: int) -> tuple[str, ...]:
        return profile.argv(settings.sglang_python, model_dir, port, settings.sglang_extra_args)

    return Command(
        argv,
        profile.env,
        profile.name,
        needs_gpu=profile.needs_gpu,
        step_down=lambda: _sglang(settings, smaller(profile), model_dir),
    )


def _transformers(python: str, model_dir: Path) -> Command:
    """Hugging Face's own server, for GPUs that SGLang does not support. It knows no key: loopback only."""

    def argv(port: int) -> tuple[str, ...]:
        serve = (python, "-m", "transformers.cli.transformers", "serve", str(model_dir))
        return (*serve, "--host", LOOPBACK, "--port", str(port))

    return Command(argv, OFFLINE, "transformers serve", model=str(model_dir))
