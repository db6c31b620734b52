"""What must not get in, and what must not get out. `docs/security.md` names the test beside each threat."""
