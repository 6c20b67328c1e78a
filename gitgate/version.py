"""Version: the one place that has the number; the build reads it from here, so does `--version` (no metadata lookup)."""

VERSION = "0.1.0"
