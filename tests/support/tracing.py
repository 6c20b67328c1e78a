"""Support: what a line really runs. A shell runs it where nothing can be harmed, and stub programs write down how they were called.

Never on the bare file system: a namespace of its own has a root of tmpfs with the machine's programs read-only, no network, processes of its
own, a user without rights, 64 processes at most and two seconds. It takes root and `unshare`.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from . import PATIENCE

SECONDS = 2
# Builds the root, and becomes the first process in it, so that a signal to everybody reaches what a line left behind.
BUILD = r"""
set -eu
root=$1
mount --make-rprivate /
mount -t tmpfs -o size=256m tmpfs "$root"
cd "$root"
mkdir dev proc tmp log lines stubs etc
for name in usr bin sbin lib lib32 lib64 libx32; do
  if [ -L "/$name" ]; then cp -a "/$name" "$name"
  elif [ -d "/$name" ]; then mkdir "$name"; mount --bind "/$name" "$name"; mount -o remount,bind,ro "$name"; fi
done
for name in null zero urandom; do : >"dev/$name"; mount --bind "/dev/$name" "dev/$name"; done
ln -s /proc/self/fd dev/fd; ln -s /proc/self/fd/0 dev/stdin; ln -s /proc/self/fd/1 dev/stdout; ln -s /proc/self/fd/2 dev/stderr
printf 'nobody:x:65534:65534::/tmp:/bin/sh\n' >etc/passwd
cp "$2"/lines/* lines
cp "$2/driver" driver
for name in $3; do
  printf '#!/bin/sh\n{ printf "%%s" "${0##*/}"; for each; do printf "\\037%%s" "$each"; done; printf "\\036"; } >>/log/now\n' >"stubs/$name"
  chmod 755 "stubs/$name"
done
mount -t tmpfs -o size=64m,mode=1777 tmpfs tmp
mount -t proc proc proc
mount -t tmpfs -o size=64m tmpfs log
mkdir log/done
mount --bind "$2/log" log/done
mount -o remount,ro "$root"
exec chroot "$root" /bin/bash /driver
"""
DRIVER = r"""
ulimit -u 64 -f 20000 -c 0
cd /tmp
for line in /lines/*; do
  : >/log/now; chmod 666 /log/now
  mkdir -p /tmp/here 2>/dev/null; chmod 777 /tmp/here
  ( cd /tmp/here && exec setpriv --reuid=65534 --regid=65534 --clear-groups --no-new-privs --inh-caps=-all \
      env -i HOME=/tmp PATH=/stubs:/usr/bin:/bin "$SHELL_USED" "$line" ) </dev/null >/dev/null 2>&1 &
  child=$!
  n=0
  while kill -0 "$child" 2>/dev/null && [ "$n" -lt $((SECONDS_AT_MOST * 50)) ]; do sleep 0.02; n=$((n + 1)); done
  [ "$n" -gt 2 ] || sleep 0.01
  kill -9 -1 2>/dev/null
  wait 2>/dev/null
  if [ -s /log/now ]; then cp /log/now "/log/done/${line##*/}"; fi
  chmod -R u+rwx /tmp/here 2>/dev/null; rm -rf /tmp/here
done
"""


def trace(
    lines: Sequence[str], stubs: Sequence[str], folder: Path, shell: str = "bash"
) -> list[list[list[str]]]:
    """Run each line, and give for each the calls of the stubs: name and arguments."""
    root, made = folder / "root", folder / "made"
    for place in (root, made / "lines", made / "log"):
        place.mkdir(parents=True)
    for number, line in enumerate(lines):
        (made / "lines" / f"{number:06}").write_text(line, encoding="utf-8", errors="surrogateescape")
    head = f"SHELL_USED=/bin/{shell}; SECONDS_AT_MOST={SECONDS}\n"
    (made / "driver").write_text(head + DRIVER)
    said = subprocess.run(
        ["unshare", "-mnpif", "--kill-child", "sh", "-c", BUILD, "sh", str(root), str(made), " ".join(stubs)],
        capture_output=True,
        timeout=PATIENCE + SECONDS * len(lines),
        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
    )
    assert said.returncode == 0, said.stderr.decode()
    return [calls_in(made / "log" / f"{number:06}") for number in range(len(lines))]


def calls_in(log: Path) -> list[list[str]]:
    if not log.exists():
        return []
    text = log.read_text(encoding="utf-8", errors="surrogateescape")
    return [call.split("\037") for call in text.split("\036") if call]
