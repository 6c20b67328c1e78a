"""Store: how far git has come, read from its talk by GitPython, which is loaded when there is something to read."""

from __future__ import annotations

from collections.abc import Callable

from .wire import Progress


def late_listener(progress: Progress) -> Callable[[str], None]:
    """A reader of git's lines; an idle fetch has no progress and pays nothing for it."""
    handlers: list[Callable[[str], None]] = []

    def on_line(line: str) -> None:
        if "objects: " in line or "deltas: " in line:
            if not handlers:
                handlers.append(listener(progress))
            handlers[0](line)

    return on_line


def listener(progress: Progress) -> Callable[[str], None]:
    """Git's progress lines, told to `progress` as a stage, how many are done, and of how many."""
    from git.util import RemoteProgress

    stages = {
        RemoteProgress.COUNTING: "counting",
        RemoteProgress.COMPRESSING: "compressing",
        RemoteProgress.WRITING: "sending",
        RemoteProgress.RECEIVING: "receiving",
        RemoteProgress.RESOLVING: "checking",
        RemoteProgress.FINDING_SOURCES: "looking",
    }

    class Listener(RemoteProgress):
        def update(
            self,
            op_code: int,
            cur_count: str | float,
            max_count: str | float | None = None,
            message: str = "",
        ) -> None:
            del message
            stage = stages.get(op_code & self.OP_MASK, "working")
            progress(stage, int(float(cur_count or 0)), int(float(max_count)) if max_count else None)

    return Listener().new_message_handler()
