"""Gates: gates as they stand: listed, overdue, stalled, archived, followed, and whether their agents can be started."""
