"""Runners: one for each place where a resumed agent is started."""
