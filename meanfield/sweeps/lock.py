"""One run at a time in a store: an advisory lock that the kernel releases when its process dies, however it dies."""

import contextlib
import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


@contextlib.contextmanager
def locked(out: Path) -> Iterator[None]:
    """Holds the lock file `.{name}.lock` beside the store; refuses, naming the holder, where another run holds it."""
    if fcntl is None:
        raise ValueError(
            "out=: stores need file locks (fcntl), which this system lacks; leave out away and save the result"
        )
    out.parent.mkdir(parents=True, exist_ok=True)
    path = out.with_name(f".{out.name}.lock")
    handle = _acquire(path, out)
    try:
        os.ftruncate(handle, 0)
        os.write(handle, json.dumps({"pid": os.getpid(), "host": socket.gethostname()}).encode())
        yield
    finally:
        path.unlink(missing_ok=True)  # while it is held: whoever waits sees that its file is gone and opens the next
        os.close(handle)


def _acquire(path: Path, out: Path) -> int:
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if path.exists() and os.stat(path).st_ino == os.fstat(handle).st_ino:
                return handle
        except BlockingIOError:
            holder = os.read(handle, 1000).decode(errors="replace") or "another process"
            os.close(handle)
            raise ValueError(
                f"out={str(out)!r} is held by another run ({holder}): wait for it or give another out"
            ) from None
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)
