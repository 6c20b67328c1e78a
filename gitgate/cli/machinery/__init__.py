"""Command line: the verbs that set up, share, resume and check."""
