"""Service: the only door to gates; what every surface and verb goes through."""
