"""Command line: the one room that prints, exits and turns errors into exit codes."""
