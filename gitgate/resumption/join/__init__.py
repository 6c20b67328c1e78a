"""Resumption: a person joins the agent's conversation, and what it comes to."""
