"""Version and address: the one place that has each; everything else that names them is written from here.

The build reads the version from here, so does `--version` (no metadata lookup). The repository's address stands in
pyproject.toml, the README, the pages and the workflows of `git gate init --github`: change it here, then run
`python docs/generate.py`.
"""

VERSION = "0.1.0"
REPOSITORY = "OWNER/git-gate"
