"""Test bed: what tests stand on. `conftest` hands its pieces out as fixtures; tests import only its types."""
