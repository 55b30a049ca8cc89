"""Make the peers' environments: ``python -m tests.benchmarks.install_peers FOLDER [NAME…]``.

Needs a network, pip and (for pi) npm. Peers are optional; what fails to install is not measured.
"""

import subprocess
import sys
from pathlib import Path

from tests.benchmarks.peers import PEERS

NEEDS_PYTHON = {"openhands": "python3.12"}
"""Peers that do not run on every Python that we run on: the interpreter to look for."""
FOR_SCRIPTS = ("orjson", "msgspec")
"""What the scripts import beside the peer."""


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    folder = Path(sys.argv[1]).absolute()
    for name in sys.argv[2:] or PEERS:
        try:
            install(folder / name, name)
        except (subprocess.SubprocessError, OSError) as error:
            print(f"{name}: not installed ({error})")
        else:
            print(f"{name}: installed")
    print(f"now: LEFTFOLD_PEERS={folder} make bench")


def install(home, name):
    home.mkdir(parents=True, exist_ok=True)
    if name == "pi":
        subprocess.run(
            ["npm", "install", "--no-fund", "--no-audit", *PEERS[name], "node@22"],
            cwd=home,
            check=True,
        )
        return
    python = NEEDS_PYTHON.get(name, sys.executable)
    subprocess.run([python, "-m", "venv", home], check=True)
    packages = [*PEERS[name], *FOR_SCRIPTS]
    subprocess.run([home / "bin" / "python", "-m", "pip", "install", "-q", *packages], check=True)


if __name__ == "__main__":
    main()
