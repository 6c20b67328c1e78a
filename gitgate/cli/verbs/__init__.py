"""Command line: the verbs of agents and of people."""
