"""Agents: the lab's fixtures, for the tests that drive the real Claude Code."""

from __future__ import annotations

from support.lab.fixtures import claude_binary, machine, scripted

__all__ = ["claude_binary", "machine", "scripted"]
