"""Setup: what `git gate init` sets up, what `doctor` finds, and the demonstrations."""
