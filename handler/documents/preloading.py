"""Imported last in the fork server: what is loaded by then is given its final place.

A collection in a render process would touch, and so copy, memory that all of them share; and the 70 MB that importing
PyMuPDF leaves free in the heap would be carried along by every one of them.
"""

import ctypes
import gc

gc.collect()
gc.freeze()
ctypes.CDLL(None).malloc_trim(0)
