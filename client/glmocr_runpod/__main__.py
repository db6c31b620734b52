"""`python -m glmocr_runpod`."""

from glmocr_runpod.cli import main

main()
