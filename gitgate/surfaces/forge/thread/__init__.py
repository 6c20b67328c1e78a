"""Surfaces: what we write on a pull request."""
