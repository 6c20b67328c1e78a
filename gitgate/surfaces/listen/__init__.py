"""Surfaces: somebody listens: questions as they come, one at a time, in a dialog or at the terminal.

`listening` finds what waits and asks it, `dialogs` has the programs that show it, `window` the one of our own. What is
answered is recorded by `acts.answering`, as from a command; a dialog decides nothing.
"""
