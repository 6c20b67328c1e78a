"""Agents: one adapter for each program that asks and is resumed."""
