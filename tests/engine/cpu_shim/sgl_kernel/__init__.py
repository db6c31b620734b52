"""Takes the place of SGLang's CUDA kernels on a machine without CUDA.

The real package cannot be imported without libcuda.so.1, and SGLang's CPU path imports many of its names but, with
torch's own attention, calls none of them: every name is there and refuses to be called.
"""

__version__ = "0.0.0+cpu"


def __getattr__(name: str) -> object:
    if name.startswith("__"):
        raise AttributeError(name)

    def refuse(*args: object, **options: object) -> None:
        raise NotImplementedError(f"sgl_kernel.{name} needs CUDA")

    refuse.__name__ = name
    return refuse
