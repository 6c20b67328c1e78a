"""Command line: what stands between a verb and the person: output, prompts, editor, pager."""
