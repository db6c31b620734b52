"""Client for the GLM-OCR worker on RunPod Serverless: a document is paid for once and its result is never lost."""

from glmocr_runpod.client import Client
from glmocr_runpod.config import Config
from glmocr_runpod.contract import Options
from glmocr_runpod.document import Document
from glmocr_runpod.resume import Consent

__version__ = "0.1.0"
__all__ = ["Client", "Config", "Consent", "Document", "Options", "__version__"]
