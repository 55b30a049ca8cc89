"""Where the tests of faults work, and what they need."""

import shutil
import tempfile
from pathlib import Path

import pytest

MEMORY = Path("/dev/shm")


@pytest.fixture
def fast_folder(tmp_path):
    """A folder in memory, where there is one: these tests open thousands of stores."""
    if not MEMORY.is_dir():
        yield tmp_path
        return
    folder = Path(tempfile.mkdtemp(prefix="leftfold-", dir=MEMORY))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)
