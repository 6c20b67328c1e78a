"""Benchmarks: every row is a ratio of two figures from the same run, on the same repository, on the same machine."""
