"""Fuzz: hostile bytes for every parser. Nothing but our own errors comes out, nothing takes a second, nothing is written."""
