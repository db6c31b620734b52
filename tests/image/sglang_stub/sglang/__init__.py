"""Stands in for SGLang in the image tests: it can be imported, and nothing else."""
