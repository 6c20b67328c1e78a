"""Store: git objects and refs, the partial work, the remotes, the archive."""
