"""Surfaces: people hear of a gate: on the desktop, by a program of theirs, by a webhook, by any chat that Apprise knows.

Nothing is decided here, and nothing waits for it. `addresses` reads who is told and how, `events` says of what, `outbox`
remembers what was sent, `sending` sends. A way to tell somebody is one file and one line in `addresses.IN_ORDER`.
"""
