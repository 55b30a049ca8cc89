"""Files that zstd has compressed, as Codex compresses old rollouts."""

from __future__ import annotations

import tempfile
from contextlib import suppress
from typing import TYPE_CHECKING

import zstandard

if TYPE_CHECKING:
    from typing import BinaryIO

_MAGIC = zstandard.MAGIC_NUMBER.to_bytes(4, "little")


def plain(file: BinaryIO) -> BinaryIO:
    """Return *file*; if it is compressed, what it holds, in a file without a name.

    Of a file that is damaged, or cut off, it is what comes before the damage.

    Raises:
        OSError: *file* cannot be read, or there is no space for what it holds.
    """
    is_compressed = file.read(len(_MAGIC)) == _MAGIC
    file.seek(0)
    if not is_compressed:
        return file
    contents = tempfile.TemporaryFile()  # noqa: SIM115 - it is what is returned
    with suppress(zstandard.ZstdError):
        zstandard.ZstdDecompressor().copy_stream(file, contents)
    contents.seek(0)
    return contents
