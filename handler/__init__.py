"""The GLM-OCR worker: documents in, Markdown and structured JSON out, nothing lost silently."""

__version__ = "0.1.0"
