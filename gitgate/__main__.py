"""`python -m gitgate`: the same as `git-gate`."""

import sys

from .cli.main import main

sys.exit(main())
