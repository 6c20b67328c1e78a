"""Document: the YAML subset that records, policies and question files are written in. Pure."""
