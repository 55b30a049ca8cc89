"""Make the peers' environments: ``python -m tests.benchmarks.install_peers FOLDER [NAME…]``.

Needs a network, pip and (for pi) npm. Peers are optional; what fails to install is not measured.
"""

import subprocess
import sys
import venv
from pathlib import Path

from tests.benchmarks.peers import PEERS


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
    venv.create(home, with_pip=True)
    subprocess.run(
        [home / "bin" / "python", "-m", "pip", "install", "--quiet", *PEERS[name]], check=True
    )


if __name__ == "__main__":
    main()
