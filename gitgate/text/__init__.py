"""Text: words as they may be shown, moments, patterns, and what a shell command or a secret looks like. Pure."""
