"""Surfaces: `git gate desk`: gates, runs and agents of every repository on one terminal. It decides nothing: what a key means is
a command of git gate's, which is run, and shown.
"""
