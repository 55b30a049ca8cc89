"""The peers: each by the script and in the environment that it wants; what is missing is named.

``LEFTFOLD_PEERS`` is a folder with a virtual environment per peer (``install_peers.py`` makes it),
``LEFTFOLD_PEER_SCRIPTS`` the folder of the scripts (default: ``../shared/peers``).
"""

import json
import os
import shutil
import subprocess
from pathlib import Path

PEERS = {
    "limit": [],
    "eventsourcing_sqlite": ["eventsourcing"],
    "openai_agents": ["openai-agents", "aiosqlite"],
    "strands": ["strands-agents"],
    "langgraph": ["langgraph", "langgraph-checkpoint-sqlite"],
    "openhands": ["openhands-sdk"],
    "adk": ["google-adk[db]", "aiosqlite"],
    "llm": ["llm"],
    "pi": ["@earendil-works/pi-coding-agent@latest"],
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
        {"N_APPEND": "300", "SIZES": "1000,10000", "N_SESSIONS": "100", "LG_FULL_N": "300"}
        if quick
        else {"SIZES": "1000,10000,100000", "N_APPEND": "1000", "LG_FULL_N": "500"}
    )
    command = (
        _pi(home / name, script, quick=quick)
        if name == "pi"
        else [str(home / name / "bin/python"), str(_renamed(script, home / name))]
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
    except subprocess.CalledProcessError as error:
        return {"not measured": f"its script failed: {''.join(error.stderr.splitlines()[-1:])}"}
    except (subprocess.SubprocessError, OSError, ValueError, IndexError) as error:
        return {"not measured": f"its script failed: {str(error)[:200]}"}


def _renamed(script, home):
    """Return a copy of *script* under another name: each has that of the package it imports."""
    shutil.copyfile(script.with_name("common.py"), home / "common.py")
    return shutil.copyfile(script, home / f"measure_{script.name}")


def _pi(home, script, *, quick):
    node = home / "node_modules" / ".bin" / "node"
    command = [str(node if node.exists() else "node"), str(script), "--root", str(home)]
    return [*command, "--out", str(home / "result.json"), *(["--quick"] if quick else [])]


def rows(found):
    """Return, for each peer, its version, its durable append beside the limit's, its resumes."""
    limit = found.get("limit", {}).get("append", {}).get("write+fdatasync", {}).get("median_us")
    return [_row(name, each, limit) for name, each in found.items()]


def _row(name, found, limit):
    if "not measured" in found:
        return [name, "", "not measured", found["not measured"]]
    appends = [
        f"{how} {median:,.0f}{f' (p99 {p99:,.0f})' if p99 else ''}"
        + (f" = {median / limit:.1f} ×" if limit else "")
        for how, median, p99 in _appends(found)
    ]
    version = found.get("versions") or f"{found.get('version')}, node {found.get('node')}"
    return [name, version, "; ".join(appends), _resumes(found)]


def _appends(found):
    """Yield how it was appended, median and p99 in microseconds; the scripts have three forms."""
    appended = found.get("append") or {}
    if isinstance(appended, list):  # pi: one for each length of the session
        for each in appended:
            if "p50_us" in each:
                yield f"{each['n']:,} messages, not synced", each["p50_us"], each["p99_us"]
    elif "median_us" in appended:
        yield "", appended["median_us"], appended.get("p99_us")
    else:
        for how, took in appended.items():
            if isinstance(took, dict) and "median_us" in took:
                yield how, took["median_us"], took.get("p99_us")


def _resumes(found):
    resumed = found.get("resume_s") or {
        each["n"]: each["total_s"] for each in found.get("open", ()) if "total_s" in each
    }
    return "; ".join(f"{size}: {_seconds(took)}" for size, took in resumed.items())


def _seconds(took):
    if isinstance(took, dict):
        shown = (f"{key} {_seconds(value)}" for key, value in took.items())
        return ", ".join(shown)
    return f"{took * 1000:,.0f} ms" if isinstance(took, int | float) else "–"
