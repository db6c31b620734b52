"""The bundled page: what boot and `warmup` read to prove the chain."""
