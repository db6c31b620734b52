"""Benchmarks: stock glmocr and this worker, side by side, on a simulated engine. Never part of the image."""
