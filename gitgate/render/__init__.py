"""Render: outcomes as text or JSON."""
