"""A continuous-batching engine whose time is computed instead of spent on a GPU."""
