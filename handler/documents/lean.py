"""PyMuPDF without its layout analyser, which its version 2.0 loads on import with onnxruntime: 50 MB and a second."""

import sys

sys.modules["pymupdf.layout"] = None  # type: ignore[assignment]

import pymupdf as pymupdf  # noqa: E402 - after the line above
from pymupdf import mupdf as mupdf  # noqa: E402
