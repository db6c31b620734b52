"""Awkward files and the ledger each must get: the regression suite of what goes in.

`python -m tests.awkward` prints the table. A new fault gets a case in `pdfs.py`, `pictures.py` or `containers.py`.
"""
