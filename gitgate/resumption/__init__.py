"""Resumption: claims an answer, restores the work and the session, starts the agent, reports."""
