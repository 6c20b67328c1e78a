"""Golden: each type of question on each surface, and the bytes of each record, as files that a change is compared with.

`python -m tests.golden` says what differs from the files in `tests/golden/expected`; with `--write` they are renewed. What varies from
run to run (ids, digests, places) has names in them. A file is the product as it is, its defects included: `scene.KNOWN` names those.
"""
