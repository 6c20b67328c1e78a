"""Context: what every verb is handed (repository, settings, person, clock), which gate is meant, and which remote."""
