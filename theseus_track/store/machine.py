"""Which process table a process id belongs to, and whether a process is alive."""

import os
from pathlib import Path

__all__ = ["is_dead", "this_machine"]


def this_machine() -> str:
    """Return what identifies this machine's process table until it reboots.

    Two containers may share a host name but not a process table, where the id of
    a living process looks dead; hence the boot and the process namespace.

    Returns:
        A short text, or "" where the system does not tell.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
        namespace = Path("/proc/self/ns/pid").stat().st_ino
    except (OSError, ValueError):
        return ""
    return f"{boot.strip()}:{namespace}"


def is_dead(pid: int) -> bool:
    """Return whether no process of that id runs on this machine.

    Args:
        pid: A process id.

    Returns:
        False also when it cannot be known.
    """
    # On Windows `os.kill(pid, 0)` would end the process.
    if os.name != "posix" or pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
    return _is_zombie(pid)


def _is_zombie(pid: int) -> bool:
    # A killed process stays a zombie where its parent does not wait for it, as
    # under the init of many containers.
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False
    return stat.rpartition(b")")[2].split()[:1] == [b"Z"]
