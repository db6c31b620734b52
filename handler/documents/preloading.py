"""Imported last in the fork server: what is loaded by then is taken out of the collector's sight.

A collection in a render process would otherwise touch, and so copy, memory that all of them share.
"""

import gc

gc.collect()
gc.freeze()
