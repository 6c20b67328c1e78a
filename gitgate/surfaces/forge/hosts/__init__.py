"""Surfaces: forges: what is asked of one, GitHub, Gitea, and the events that they send."""
