"""Core: the words that stand in files, flags and trailers. Apart from the values, so that a list need not load those."""

PRIORITIES = ("urgent", "high", "normal", "low")  # most pressing first
DELIVERIES = ("resume", "wait", "none")
ON_TIMEOUT = ("stuck", "default", "remind", "fail")
VERDICTS = ("answered", "approved", "rejected", "defaulted")
OUTCOMES = ("resumed", "released", "failed")
