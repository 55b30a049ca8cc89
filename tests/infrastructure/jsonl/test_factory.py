"""Settings."""

from pathlib import Path

import pytest
from eventsourcing.persistence import InfrastructureFactory
from eventsourcing.utils import Environment

from infrastructure.errors import SettingsError
from infrastructure.jsonl import JSONLFactory


def make(name="", **env):
    return InfrastructureFactory.construct(
        Environment(name, {"PERSISTENCE_MODULE": "infrastructure.jsonl"} | env)
    )


def test_the_store_comes_from_the_environment(monkeypatch):
    monkeypatch.setenv("HOME", "/home/me")

    assert make().store.path == Path("/home/me/.leftfold/conversations")
    assert make(LEFTFOLD_HOME="~/lf").store.path == Path("/home/me/lf/conversations")
    assert make(LEFTFOLD_HOME="/a", LEFTFOLD_STORE="/b").store.path == Path("/b")
    assert make("app", APP_LEFTFOLD_STORE="/c", LEFTFOLD_STORE="/b").store.path == Path("/c")


def test_durability_is_fsync_unless_said_otherwise():
    assert make().store.durable is True
    assert make(LEFTFOLD_DURABILITY="os").store.durable is False
    with pytest.raises(SettingsError, match="LEFTFOLD_DURABILITY is 'yes'"):
        make(LEFTFOLD_DURABILITY="yes")


def test_snapshots_are_beside_the_logs(tmp_path):
    factory = make(LEFTFOLD_STORE=str(tmp_path))

    assert isinstance(factory, JSONLFactory)
    assert factory.aggregate_recorder("snapshots").store.path == tmp_path / ".snapshots"
    factory.close()
