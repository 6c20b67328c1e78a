"""Test bed: forges on loopback, held to GitHub's own description of its API."""
