"""The text engine: one owner for its process, one client for its API."""
