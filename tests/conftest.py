"""Every test has a home of its own and a clean environment."""

import os
import signal
from zlib import crc32

import pytest
from hypothesis import HealthCheck, settings

from tests import both_ways, databases
from tests.levels import LEVEL, at_level, examples

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
    "UMADB_",
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


@pytest.fixture(scope="session")
def postgres(tmp_path_factory):
    """The folder with the socket of a PostgreSQL that all tests share; each has a schema of its own."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    return databases.or_skip(databases.shared_postgres, folder)


@pytest.fixture
def umadb(tmp_path):
    """An UmaDB server: it has one store, so each test has one of its own."""
    server = databases.or_skip(databases.UmaDB, tmp_path)
    yield server
    server.close()


OVER_A_SERVER = ("eventsourcing.postgres", "eventsourcing_umadb")
MODULES = ("infrastructure.jsonl", "eventsourcing.popo", "eventsourcing.sqlite", *OVER_A_SERVER)


@pytest.fixture(params=MODULES)
def conversations(request, tmp_path):
    """The application, over every persistence module."""
    from app.application import Conversations

    environment = {
        "PERSISTENCE_MODULE": request.param,
        "LEFTFOLD_STORE": str(tmp_path / "home" / "conversations"),
        "LEFTFOLD_DURABILITY": "os",
        "SQLITE_DBNAME": str(tmp_path / "events.sqlite"),
    }
    if request.param == "eventsourcing.postgres":
        host = request.getfixturevalue("postgres")
        environment |= databases.postgres_environment(host, databases.new_schema(host))
    elif request.param == "eventsourcing_umadb":
        environment |= databases.umadb_environment(request.getfixturevalue("umadb"))
    with Conversations(environment) as application:
        yield application


def pytest_collection_modifyitems(config, items):
    """Sample what `conversations` does over a server, where not everything is tried."""
    stride = at_level(quick=4, whole=1)

    def is_left_out(item):
        module = getattr(item, "callspec", None) and item.callspec.params.get("conversations")
        return module in OVER_A_SERVER and crc32(item.nodeid.encode()) % stride != 0

    left_out = [item for item in items if is_left_out(item)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not is_left_out(item)]
