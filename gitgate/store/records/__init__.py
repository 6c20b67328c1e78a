"""Store: records as commits, and the archive of closed ones."""
