"""Store: a process is listened to for as long as it says something. Nobody waits for ever for one that does not."""

from __future__ import annotations

import os
import select

# Seconds without a byte. A partial clone may have to fetch what is asked, so it is not short.
PATIENCE = 60.0


class Patient:
    """A pipe that is read for as long as something comes: a damaged object can leave git turning round in itself."""

    def __init__(self, pipe: int) -> None:
        self.pipe = pipe
        self.poll = select.poll()
        self.poll.register(pipe, select.POLLIN)
        self.rest = b""

    def more(self) -> bytes:
        """What came next, empty at the end; TimeoutError where nothing did."""
        if not self.poll.poll(PATIENCE * 1000):
            raise TimeoutError(f"has said nothing for {PATIENCE:g} s")
        return os.read(self.pipe, 1 << 16)

    def line(self) -> bytes:
        while b"\n" not in self.rest and (came := self.more()):
            self.rest += came
        line, _, self.rest = self.rest.partition(b"\n")
        return line

    def exactly(self, size: int) -> bytes:
        """So many bytes, or as many as there are before the end."""
        parts, got = [self.rest], len(self.rest)
        while got < size and (came := self.more()):
            parts.append(came)
            got += len(came)
        whole = b"".join(parts)
        self.rest = whole[size:]
        return whole[:size]
