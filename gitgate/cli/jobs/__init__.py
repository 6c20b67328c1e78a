"""Command line: what CI jobs and webhook receivers call."""
