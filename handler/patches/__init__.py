"""Boot patches for third-party packages: each one declared, versioned, applied and verified."""
