"""Acts: what agents and people do to gates: ask, answer, remark, end, and what is reported of it."""
