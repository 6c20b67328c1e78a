"""Sharing: what a shared repository takes of a push, the archive of closed gates, and agents' branches on their way there."""
