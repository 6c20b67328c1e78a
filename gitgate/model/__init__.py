"""Model: what a gate is and what may happen to it. Pure: no input or output, no clock, no identity of its own."""
