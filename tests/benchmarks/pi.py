"""pi, by the cases of its own script: each in a fresh process, taking turns with ours."""

import json
import os
import subprocess

from tests.benchmarks import peers

OPEN = "pi: open + context"


class Pi:
    """Sessions that pi has written, of each length that is asked for, once."""

    def __init__(self, folder):
        self._folder = folder
        self._files = {}

    @classmethod
    def found(cls, folder):
        """Return pi if it is installed; else None: it is not measured."""
        installed = peers.folder() and (peers.folder() / "pi" / "node_modules").is_dir()
        return cls(folder) if installed and (peers.scripts() / "pi.mjs").is_file() else None

    def opening(self, entries):
        """Return a run that opens a session of so many *entries* and builds its context."""
        if entries not in self._files:
            folder = self._folder / f"pi-{entries}"
            folder.mkdir()
            self._case("append", n=entries, dir=str(folder))
            [self._files[entries]] = folder.rglob("*.jsonl")
        file = str(self._files[entries])
        return lambda: [self._case("open", n=entries, file=file)["total_s"]]

    def _case(self, name, **arguments):
        home = peers.folder() / "pi"
        script = str(peers.scripts() / "pi.mjs")
        command = [peers.node(home), script, "--case", name, json.dumps(arguments)]
        done = subprocess.run(
            [*command, "--root", str(home)],
            env=os.environ | {"PI_OFFLINE": "1", "PI_CODING_AGENT_DIR": str(self._folder)},
            capture_output=True,
            text=True,
            check=True,
        )
        [line] = [line for line in done.stdout.splitlines() if line.startswith("@@")]
        return json.loads(line.removeprefix("@@"))
