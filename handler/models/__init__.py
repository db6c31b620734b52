"""Where a model's files are: found, verified, or downloaded once for all workers. The boot calls `resolve.resolve`.

This file imports nothing, so that the image's weights can be fetched with the few modules that need it.
"""
