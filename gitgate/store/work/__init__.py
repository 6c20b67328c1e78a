"""Store: partial work: taken, looked at, put back."""
