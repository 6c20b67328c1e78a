"""Exchange: this clone's gates and the remote's, brought together: fetched, reconciled, pushed."""
