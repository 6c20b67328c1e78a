"""Record: the events of a gate as files and commit messages, and the gate that they amount to. Pure."""
