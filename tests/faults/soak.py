"""The long runs: many writers for a while, and a kill at every system call.

python -m tests.faults.soak [--processes 8] [--appends 1000] [--conversations 4] [--kills 40]
"""

import argparse
import json
import shutil
import tempfile
from pathlib import Path

from tests.faults.conftest import MEMORY
from tests.faults.writers import Soak


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--appends", type=int, default=1000)
    parser.add_argument("--conversations", type=int, default=4)
    parser.add_argument("--kills", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, default=MEMORY if MEMORY.is_dir() else None)
    chosen = vars(parser.parse_args())
    folder = Path(tempfile.mkdtemp(prefix="leftfold-soak-", dir=chosen.pop("folder")))
    try:
        print(json.dumps(Soak(folder, **chosen).run()))
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
