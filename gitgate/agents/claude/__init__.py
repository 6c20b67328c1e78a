"""Agents: Claude Code, headless and in a person's terminal."""
