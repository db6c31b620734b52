"""Where documents come from: inline base64, an http(s) address, the volume, the bucket.

`staging.stage` is the one entrance. Whatever the source, the bytes end up in a file of ours, within the limits, out of
their container, and of a kind that the bytes themselves show.
"""
