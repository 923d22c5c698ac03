"""Runs cells in a notebook's kernel; prints what they showed, one JSON line a cell.

Called with the cells' sources, one an argument.
"""

import json
import sys
from typing import Any

from jupyter_client.manager import start_new_kernel

LIMIT = 100.0


def run(client: Any, cell: str) -> list[list[str]]:
    """Return (kind, text) of everything that a cell showed."""
    shown: list[list[str]] = []

    def keep(message: dict[str, Any]) -> None:
        kind, content = message["msg_type"], message["content"]
        if kind == "stream":
            shown.append([content["name"], content["text"]])
        elif kind == "error":
            shown.append([kind, "\n".join(content["traceback"])])
        elif kind in ("display_data", "execute_result"):
            shown.append([kind, " ".join(content["data"])])

    client.execute_interactive(cell, timeout=LIMIT, output_hook=keep)
    return shown


if __name__ == "__main__":
    manager, kernel = start_new_kernel(kernel_name="python3")
    try:
        for source in sys.argv[1:]:
            print(json.dumps(run(kernel, source)), flush=True)  # noqa: T201
    finally:
        kernel.stop_channels()
        manager.shutdown_kernel(now=True)
