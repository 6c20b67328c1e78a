"""Lab: a scripted model on loopback, and the real Claude Code run against it with nothing else in reach."""
