"""Lab: the hook of a scripted session, run by the CLI: `hook.py FOLDER`.

It notes each event in FOLDER/events.jsonl and says what FOLDER/<event> holds, if that is there.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

folder = Path(sys.argv[1])
event = json.loads(sys.stdin.read())
with (folder / "events.jsonl").open("a", encoding="utf-8") as out:
    out.write(json.dumps(event) + "\n")
said = folder / event["hook_event_name"]
if said.exists():
    sys.stdout.write(said.read_text("utf-8"))
