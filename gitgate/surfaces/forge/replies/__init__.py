"""Surfaces: comments read as replies. Pure."""
