"""Render: outcomes as text for people and as JSON for programs. Values in, text out; nothing is printed here."""
