"""The key of this home, and the seals made with it: what was recorded here, and what was not.

The key stands in ``$LEFTFOLD_HOME/seal.key``, readable by nobody else. It never goes into a log, so
a log that is written by hand, or brought from another machine, has no seal of ours. Without the
key (it was deleted, the home is another one) nothing counts as recorded here, and everything that
a seal would have allowed is asked about again.
"""

from __future__ import annotations

import errno
import hmac
import os
import re
from pathlib import Path
from typing import Final

from infrastructure.jsonl import disk
from infrastructure.safe_files import reason_of

KEY_NAME: Final = "seal.key"
_BYTES: Final = 32
_KEY: Final = re.compile(rb"[0-9a-f]{64}\n\Z")
_OTHERS: Final = 0o077


class HomeSeals:
    """Makes seals with the key of a home; it is made when the first seal is.

    Attributes:
        problem: Why the home's key cannot be used, if so: then seals hold for this run only.
    """

    def __init__(self, home: Path) -> None:
        self.path = home / KEY_NAME
        self.problem = ""
        self._key = b""

    def seal(self, vouched_for: bytes) -> str:
        """Return the seal of what is *vouched_for*."""
        if not self._key:
            self._key = self._made()
        return hmac.digest(self._key, vouched_for, "sha256").hex()

    def agrees(self, vouched_for: bytes, seal: str) -> bool:
        """Whether *seal* was made with this key, of exactly this. Looking makes no key."""
        if not (self._key or self._found()):
            return False
        return hmac.compare_digest(self.seal(vouched_for).encode(), seal.encode("utf-8", "replace"))

    def _found(self) -> bytes:
        """Return the home's key; nothing if there is none, or none to be believed."""
        try:
            self._key = _read(self.path)
        except FileNotFoundError:
            pass
        except OSError as error:
            self.problem = f"{self.path}: {reason_of(error)}"
        return self._key

    def _made(self) -> bytes:
        """Return the home's key, made now if there is none yet; a passing one if that fails."""
        if key := self._found():
            return key
        key = disk.random_bytes(_BYTES)
        if self.problem:
            return key
        try:
            return _put(self.path, key)
        except OSError as error:
            self.problem = f"{self.path}: {reason_of(error)}"
            return key


def default_home() -> Path:
    """Return where Leftfold keeps its things."""
    return Path(os.environ.get("LEFTFOLD_HOME") or "~/.leftfold").expanduser()


def is_key(path: Path) -> bool:
    """Whether *path* is the key of the home: nothing that a model may be shown."""
    try:
        return (default_home() / KEY_NAME).samefile(path)
    except OSError:
        return False


def _read(path: Path) -> bytes:
    fd = disk.open_read(path)
    try:
        status = disk.stat_fd(fd)
        text = disk.read(fd, 2 * _BYTES + 2, 0)
    finally:
        disk.close(fd)
    if status.st_mode & _OTHERS:
        raise OSError(errno.EPERM, "others can read this key: delete it, and a new one is made")
    if not _KEY.match(text):
        raise OSError(errno.EPERM, "this is no key: delete it, and a new one is made")
    return bytes.fromhex(text.decode())


def _put(path: Path, key: bytes) -> bytes:
    """Put *key* into place, whole; return it, or the one that another process put there before."""
    disk.make_folder(path.parent)
    temporary = path.with_name(f".{KEY_NAME}.{disk.random_bytes(6).hex()}.tmp")
    fd = disk.create(temporary)
    try:
        disk.write_all(fd, f"{key.hex()}\n".encode())
        disk.sync(fd)
        try:
            disk.link(temporary, path)
        except FileExistsError:
            return _read(path)
        except OSError:  # a file system without links
            disk.rename(temporary, path)
    finally:
        disk.close(fd)
        disk.remove(temporary)
    disk.sync_folder(path.parent)
    return key
