"""The peers: each by the script and in the environment that it wants; what is missing is named.

``LEFTFOLD_PEERS`` is a folder with a virtual environment per peer (``install_peers.py`` makes it),
``LEFTFOLD_PEER_SCRIPTS`` the folder of the scripts (default: ``../shared/peers``).
"""

import json
import os
import subprocess
from pathlib import Path

PEERS = {
    "openai_agents": ["openai-agents"],
    "strands": ["strands-agents"],
    "langgraph": ["langgraph", "langgraph-checkpoint-sqlite"],
    "openhands": ["openhands-sdk"],
    "adk": ["google-adk", "aiosqlite"],
    "llm": ["llm"],
    "pi": ["@earendil-works/pi-coding-agent"],
}
PATIENCE = 1800


def folder():
    named = os.environ.get("LEFTFOLD_PEERS")
    return Path(named) if named else None


def scripts():
    default = Path(__file__).parents[3] / "shared" / "peers"
    return Path(os.environ.get("LEFTFOLD_PEER_SCRIPTS") or default)


def measure(*, quick):
    """Return, for every peer, what its script printed, or why it is not measured."""
    return {name: _measured(name, quick=quick) for name in PEERS}


def _measured(name, *, quick):
    home = folder()
    if home is None:
        return {"not measured": "LEFTFOLD_PEERS is not set"}
    script = scripts() / ("pi.mjs" if name == "pi" else f"{name}.py")
    if not (home / name).is_dir() or not script.is_file():
        return {"not measured": f"no {home / name}" if script.is_file() else f"no {script}"}
    sizes = (
        {"N_APPEND": "300", "SIZES": "1000", "N_SESSIONS": "100"}
        if quick
        else {"SIZES": "1000,10000"}
    )
    command = (
        _pi(home / name, script, quick=quick)
        if name == "pi"
        else [str(home / name / "bin/python"), str(script)]
    )
    try:
        done = subprocess.run(
            command,
            env=os.environ | sizes,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=True,
        )
        if name == "pi":
            return json.loads((home / name / "result.json").read_text())
        return json.loads(done.stdout.strip().splitlines()[-1])
    except (subprocess.SubprocessError, OSError, ValueError, IndexError) as error:
        return {"not measured": f"its script failed: {str(error)[:200]}"}


def _pi(home, script, *, quick):
    node = home / "node_modules" / ".bin" / "node"
    command = [str(node if node.exists() else "node"), str(script), "--root", str(home)]
    return [*command, "--out", str(home / "result.json"), *(["--quick"] if quick else [])]


def row(name, found):
    """Return name, durable append, and resume by size, as text."""
    if "not measured" in found:
        return [name, "not measured", found["not measured"]]
    appended = found.get("append")
    if isinstance(appended, dict):
        medians = [
            f"{how} {took['median_us']:,.0f} µs"
            for how, took in appended.items()
            if isinstance(took, dict) and "median_us" in took
        ]
        appended = "; ".join(medians)
    resumed = found.get("resume_s") or {}
    times = [f"{int(size):,}: {_seconds(took)}" for size, took in resumed.items()]
    return [name, str(appended), ", ".join(times)]


def _seconds(took):
    if isinstance(took, dict):
        took = min(
            (value for value in took.values() if isinstance(value, int | float)), default=None
        )
    return "–" if took is None else f"{took * 1000:,.0f} ms"
