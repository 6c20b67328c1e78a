"""Surfaces: where a person meets a gate. They know the service, never one another."""
