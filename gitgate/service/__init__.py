"""Service: the only door to gates. Every surface and the command line come through here, and decide nothing themselves."""
