"""Surfaces: a notification on this desktop, by what the system has for that. Words go as arguments or on standard input,
never into a script.
"""

from __future__ import annotations

import json

from ...store.git.programs import find_program
from . import Endpoint, Notification, NotSent
from .command import run_bounded

NAME = "git gate"
# macOS: the words are the script's arguments.
OSASCRIPT = (
    "on run argv",
    'display notification (item 2 of argv) with title "git gate" subtitle (item 1 of argv)',
    "end run",
)
# Windows, from WSL: the words are JSON on standard input.
POWERSHELL = (
    "[Console]::InputEncoding = [Text.Encoding]::UTF8; $said = [Console]::In.ReadToEnd() | ConvertFrom-Json; "
    "Add-Type -AssemblyName System.Windows.Forms; Add-Type -AssemblyName System.Drawing; "
    "$icon = New-Object System.Windows.Forms.NotifyIcon; $icon.Icon = [System.Drawing.SystemIcons]::Information; "
    "$icon.Visible = $true; $icon.ShowBalloonTip(10000, $said.title, $said.text, 'None'); "
    "Start-Sleep -Seconds 6; $icon.Dispose()"
)
PROGRAMS = ("notify-send", "osascript", "powershell.exe")


class DesktopChannel:
    kind = "desktop"

    def misfit(self, target: Endpoint) -> str:
        return "desktop, and nothing behind it" if target.words else ""

    def lacks(self, target: Endpoint) -> str:
        if not program_of(target):
            return (
                "there is no notify-send here (Linux: install libnotify-bin), no osascript, no powershell.exe"
            )
        return ""

    def shown(self, target: Endpoint) -> str:
        del target
        return "desktop"

    def send(self, target: Endpoint, notification: Notification) -> None:
        name = program_of(target)
        if not name:
            raise NotSent(self.lacks(target), hint="another way: git config --add gitgate.notify 'command …'")
        argv = [find_program(name, target.env) or name, *arguments(name, notification)]
        said = json.dumps({"title": notification.title, "text": notification.text}).encode()
        run_bounded(argv, said if name == "powershell.exe" else b"", dict(target.env))


def program_of(target: Endpoint) -> str:
    return next((name for name in PROGRAMS if find_program(name, target.env)), "")


def arguments(name: str, notification: Notification) -> list[str]:
    """Return the arguments that follow the program's name."""
    title, text = notification.title, notification.text
    if name == "notify-send":
        urgency = "critical" if notification.urgent else "normal"
        return [f"--app-name={NAME}", f"--urgency={urgency}", "--", title, text]
    if name == "osascript":
        return [*(part for line in OSASCRIPT for part in ("-e", line)), "--", title, text]
    return ["-NoProfile", "-NonInteractive", "-Command", POWERSHELL]
