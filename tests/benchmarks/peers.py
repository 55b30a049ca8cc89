"""The peers: each by the script and in the environment that it wants; what is missing is named.

``LEFTFOLD_PEERS`` is a folder with a virtual environment per peer (``install_peers.py`` makes it),
``LEFTFOLD_PEER_SCRIPTS`` the folder of the scripts (default: ``../shared/peers``).
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from statistics import median

PEERS = {
    "limit": [],
    "eventsourcing_sqlite": ["eventsourcing"],
    "openai_agents": ["openai-agents", "aiosqlite"],
    "strands": ["strands-agents"],
    "langgraph": ["langgraph", "langgraph-checkpoint-sqlite"],
    "openhands": ["openhands-sdk"],
    "adk": ["google-adk[db]", "aiosqlite"],
    "llm": ["llm"],
    "pi": ["@earendil-works/pi-coding-agent@1.6.0"],
}
PATIENCE = 1800
ROUNDS = 3


def folder():
    named = os.environ.get("LEFTFOLD_PEERS")
    return Path(named) if named else None


def scripts():
    default = Path(__file__).parents[3] / "shared" / "peers"
    return Path(os.environ.get("LEFTFOLD_PEER_SCRIPTS") or default)


def measure(*, quick):
    """Return, for every peer and for ours, what each round found, or why nothing was measured.

    They take turns: a round is one run of each script, ours first.
    """
    found = {"leftfold": []} | {name: [] for name in PEERS}
    for _ in range(1 if quick else ROUNDS):
        for name, rounds in found.items():
            rounds.append(_measured(name, quick=quick))
    return found


def _measured(name, *, quick):
    home = folder()
    if home is None:
        return {"not measured": "LEFTFOLD_PEERS is not set"}
    script = scripts() / ("pi.mjs" if name == "pi" else f"{name}.py")
    if name == "leftfold":
        command = [sys.executable, "-m", "tests.benchmarks.ours"]
    elif not (home / name).is_dir() or not script.is_file():
        return {"not measured": f"no {home / name}" if script.is_file() else f"no {script}"}
    elif name == "pi":
        command = [node(home / name), str(script), "--root", str(home / name), "--quick"]
    else:
        command = [str(home / name / "bin/python"), str(_renamed(script, home / name))]
    appends = "300" if quick else "1000"
    sizes = {"N_APPEND": appends, "SIZES": "1000,10000", "N_SESSIONS": "100", "LG_FULL_N": "300"}
    try:
        done = subprocess.run(
            command,
            env=os.environ | sizes,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=True,
        )
        lines = done.stdout.strip().splitlines()
        return json.loads(done.stdout if name == "pi" else lines[-1])
    except subprocess.CalledProcessError as error:
        return {"not measured": f"its script failed: {''.join(error.stderr.splitlines()[-1:])}"}
    except (subprocess.SubprocessError, OSError, ValueError, IndexError) as error:
        return {"not measured": f"its script failed: {str(error)[:200]}"}


def _renamed(script, home):
    """Return a copy of *script* under another name: each has that of the package it imports."""
    shutil.copyfile(script.with_name("common.py"), home / "common.py")
    return shutil.copyfile(script, home / f"measure_{script.name}")


def node(home):
    """Return the Node.js that is installed beside pi, or that of the system."""
    own = home / "node_modules" / ".bin" / "node"
    return str(own if own.exists() else "node")


def rows(found):
    """Return, for each peer, its version, its appends beside the limit's, and its resumes."""
    limits = _appends(found["limit"]).get("write+fdatasync")
    return [_row(name, rounds, limits) for name, rounds in found.items()]


def _row(name, rounds, limits):
    rounds, all_rounds = [one for one in rounds if "not measured" not in one], rounds
    if not rounds:
        return [name, "", "not measured", all_rounds[0]["not measured"]]
    first = rounds[0]
    version = first.get("versions") or f"{first.get('version')}, node {first.get('node')}"
    appends = [
        f"{how} {_figures(took, '{:,.0f}')}".strip()
        + (f" = {median(took) / median(limits):.1f} ×" if limits else "")
        for how, took in _appends(rounds).items()
    ]
    resumes = [f"{size}: {_figures(took, '{:,.0f}')}" for size, took in _resumes(rounds).items()]
    return [name, version, "; ".join(appends), "; ".join(resumes)]


def _figures(took, form):
    """Return the median of all rounds, and their least if there are several."""
    least = f" (least {form.format(min(took))})" if len(took) > 1 else ""
    return form.format(median(took)) + least


def _appends(rounds):
    """Return the median microseconds of each round, by how was appended."""
    found = {}
    for one in rounds:
        for how, took in _appends_of(one):
            found.setdefault(how, []).append(took)
    return found


def _appends_of(found):
    """Yield how it was appended, and the median in microseconds; the scripts have three forms."""
    appended = found.get("append") or {}
    if isinstance(appended, list):  # pi: one for each length of the session
        for each in appended:
            if "p50_us" in each:
                yield f"{each['n']:,} messages, not synced", each["p50_us"]
    elif "median_us" in appended:
        yield "", appended["median_us"]
    else:
        for how, took in appended.items():
            if isinstance(took, dict) and "median_us" in took:
                yield how, took["median_us"]


def _resumes(rounds):
    """Return the milliseconds of each round, by what was resumed."""
    found = {}
    for one in rounds:
        resumed = one.get("resume_s") or {
            each["n"]: each["total_s"] for each in one.get("open", ()) if "total_s" in each
        }
        for what, seconds in _flat(resumed):
            found.setdefault(what, []).append(seconds * 1000)
    return found


def _flat(resumed, before=""):
    for what, took in resumed.items():
        if isinstance(took, dict):
            yield from _flat(took, f"{before}{what} ")
        elif isinstance(took, int | float):
            yield f"{before}{what}", took
