"""Audit: whether what is recorded holds."""
