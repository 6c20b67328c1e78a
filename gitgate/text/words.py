"""Text: the words that stand in files, flags and trailers. Apart from the values, so that a list need not load those."""

from __future__ import annotations

PRIORITIES = ("urgent", "high", "normal", "low")  # most pressing first
DELIVERIES = ("resume", "wait", "none")
ON_TIMEOUT = ("stuck", "default", "remind", "fail")
VERDICTS = ("answered", "approved", "rejected", "defaulted")
SESSION_OUTCOMES = ("approval", "selection", "freeform", "structured")
OUTCOMES = ("resumed", "released", "failed")
# The field of a conversation, by the flag and the keyword that set it.
SESSION_FIELDS = {
    "outcome": "outcome",
    "system_prompt": "system",
    "session_context": "context",
    "model": "model",
    "cwd": "cwd",
    "mcp_config": "mcp",
    "session_timeout": "timeout",
    "grace": "grace",
    "transcript": "transcript",
    "resume_session": "resume",
    "save_every": "save_every",
    "checkpoint": "checkpoint",
}
