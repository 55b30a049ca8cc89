"""Every test has a home of its own and a clean environment."""

import os
import signal

import pytest
from hypothesis import HealthCheck, settings

from tests import both_ways
from tests.levels import LEVEL, examples

# `nohup make test` ignores SIGHUP, and `make test &` in a script SIGINT. What we start would inherit
# that and never hear of them; what has a handler here, has the default there.
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, lambda number, frame: None)

# A stranger's `make test` asks what ours did; new counter-examples are for `make soak` to find.
COMMON = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.too_slow],
    "print_blob": True,
}
settings.register_profile(
    "leftfold", derandomize=LEVEL != "soak", max_examples=examples(100), **COMMON
)
settings.load_profile("leftfold")

OURS = (
    "ANTHROPIC_",
    "LEFTFOLD_",
    "PERSISTENCE_",
    "CIPHER_",
    "COMPRESSOR_",
    "MODEL_ID",
    "POSTGRES_",
    "TO_",
    "FROM_",
)


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """A LEFTFOLD_HOME that no other test has, and none of the machine's settings."""
    for name in list(os.environ):
        if name.startswith(OURS):
            monkeypatch.delenv(name)
    folder = tmp_path / "home"
    monkeypatch.setenv("LEFTFOLD_HOME", str(folder))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return folder


@pytest.fixture(autouse=True)
def contexts():
    """Make each context both ways, until a test that counts what is decoded says `undo`."""
    with pytest.MonkeyPatch.context() as patches:
        both_ways.compare(patches)
        yield patches


@pytest.fixture(params=["infrastructure.jsonl", "eventsourcing.popo", "eventsourcing.sqlite"])
def conversations(request, tmp_path):
    """The application, over every persistence module."""
    from app.application import Conversations

    environment = {
        "PERSISTENCE_MODULE": request.param,
        "LEFTFOLD_STORE": str(tmp_path / "home" / "conversations"),
        "LEFTFOLD_DURABILITY": "os",
        "SQLITE_DBNAME": str(tmp_path / "events.sqlite"),
    }
    with Conversations(environment) as application:
        yield application
