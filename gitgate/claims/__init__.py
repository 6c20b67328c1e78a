"""Claims: the right to act on an answer, and waiting for one."""
