"""Where things are on a page: one detector protocol, one module per model."""
