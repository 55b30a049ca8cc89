"""The conformance suites that the eventsourcing library ships, unmodified, over our recorders."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import ClassVar
from unittest import TestCase

import eventsourcing.tests.application as application_suites
import eventsourcing.tests.persistence as suites
import eventsourcing.tests.projection as projection_suites
import pytest
from eventsourcing.cipher import AESCipher
from eventsourcing.persistence import Tracking
from eventsourcing.utils import Environment, clear_topic_cache, get_topic

from infrastructure.jsonl import JSONLFactory
from infrastructure.jsonl.recorders import (
    JSONLAggregateRecorder,
    JSONLApplicationRecorder,
    JSONLProcessRecorder,
    JSONLTrackingRecorder,
)
from infrastructure.jsonl.snapshots import JSONLSnapshotRecorder
from infrastructure.jsonl.store import Store

MODULE = "infrastructure.jsonl"


class WithStore(TestCase):
    """A folder for each test, and stores that are closed after it."""

    def setUp(self):
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.store = Store(self.folder / "store")
        self.addCleanup(self.store.close)
        super().setUp()


class TestAggregateRecorder(WithStore, suites.AggregateRecorderTestCase):
    def create_recorder(self):
        return JSONLAggregateRecorder(self.store)


class TestSnapshotRecorder(WithStore, suites.AggregateRecorderTestCase):
    def create_recorder(self):
        return JSONLSnapshotRecorder(self.store)


class TestApplicationRecorder(WithStore, suites.ApplicationRecorderTestCase):
    def create_recorder(self):
        return JSONLApplicationRecorder(self.store)

    def test_insert_subscribe(self):
        self.optional_test_insert_subscribe()


class TestTrackingRecorder(WithStore, suites.TrackingRecorderTestCase):
    def create_recorder(self):
        return JSONLTrackingRecorder(self.store)


class TestProcessRecorder(WithStore, suites.ProcessRecorderTestCase):
    def create_recorder(self):
        return JSONLProcessRecorder(self.store)


class TestProcessRecorderAsApplicationRecorder(WithStore, suites.ApplicationRecorderTestCase):
    def create_recorder(self):
        return JSONLProcessRecorder(self.store)

    def test_insert_subscribe(self):
        self.optional_test_insert_subscribe()


class TestNonInterleaving(WithStore, suites.NonInterleavingNotificationIDsBaseCase):
    def create_recorder(self):
        return JSONLApplicationRecorder(self.store)


class SubclassedTrackingRecorder(JSONLTrackingRecorder):
    """What a read model of one's own would be."""


class TestFactory(WithStore, suites.InfrastructureFactoryTestCase):
    def setUp(self):
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        self.env = Environment("TestCase")
        self.env[JSONLFactory.PERSISTENCE_MODULE] = MODULE
        self.env[JSONLFactory.LEFTFOLD_STORE] = folder
        super().setUp()

    def expected_factory_class(self):
        return JSONLFactory

    def expected_aggregate_recorder_class(self):
        return JSONLAggregateRecorder

    def expected_application_recorder_class(self):
        return JSONLApplicationRecorder

    def expected_tracking_recorder_class(self):
        return JSONLTrackingRecorder

    def tracking_recorder_subclass(self):
        return SubclassedTrackingRecorder

    def expected_process_recorder_class(self):
        return JSONLProcessRecorder


class WithEnvironment(WithStore):
    """The settings of an application, in the process's own environment as a person sets them."""

    extra: ClassVar[dict[str, str]] = {}

    def setUp(self):
        super().setUp()
        clear_topic_cache()
        settings = {"PERSISTENCE_MODULE": MODULE, "LEFTFOLD_STORE": str(self.store.path)}
        before = dict(os.environ)
        self.addCleanup(_restore, before)
        os.environ.update(settings | self.extra)


def _restore(before):
    os.environ.clear()
    os.environ.update(before)


class TestExampleApplication(WithEnvironment, application_suites.ExampleApplicationTestCase):
    expected_factory_topic = get_topic(JSONLFactory)


class TestExampleApplicationWithCipher(TestExampleApplication):
    extra: ClassVar[dict[str, str]] = {"CIPHER_KEY": AESCipher.create_key(16)}


class TestExampleApplicationWithCompressor(TestExampleApplication):
    extra: ClassVar[dict[str, str]] = {"COMPRESSOR_TOPIC": "zlib"}


class TestExampleApplicationWithBoth(TestExampleApplication):
    extra: ClassVar[dict[str, str]] = {
        "CIPHER_KEY": AESCipher.create_key(16),
        "COMPRESSOR_TOPIC": "eventsourcing.compressor:ZlibCompressor",
    }


# The suite looks for this warning with whatever filter it finds.
@pytest.mark.filterwarnings("default:'log' is deprecated")
class TestApplication(WithEnvironment, application_suites.ApplicationTestCase):
    pass


class CountersView(JSONLTrackingRecorder, projection_suites.EventCountersView):
    """Counts as tracking positions: each count is a reader's name, so both are saved durably."""

    def get_created_event_counter(self):
        return self.max_tracking_id("created") or 0

    def get_subsequent_event_counter(self):
        return self.max_tracking_id("subsequent") or 0

    def incr_created_event_counter(self, tracking):
        self._count("created", tracking)

    def incr_subsequent_event_counter(self, tracking):
        self._count("subsequent", tracking)

    def _count(self, name, tracking):
        with self.store.lock:
            self.insert_tracking(tracking)
            self.insert_tracking(Tracking(name, (self.max_tracking_id(name) or 0) + 1))


class TestEventCountersView(WithStore, projection_suites.EventCountersViewTestCase):
    def construct_event_counters_view(self):
        return CountersView(self.store)


class TestEventCountersProjection(
    WithEnvironment, projection_suites.AggregateEventCountersProjectionTestCase
):
    view_class = CountersView

    def setUp(self):
        super().setUp()
        self.env = {
            "PERSISTENCE_MODULE": MODULE,
            "LEFTFOLD_STORE": str(self.store.path),
            "EVENTCOUNTERS_LEFTFOLD_STORE": str(self.folder / "view"),
        }


class TestEventSourcedProjection(WithEnvironment, projection_suites.EventSourcedProjectionTestCase):
    def setUp(self):
        super().setUp()
        self.env = {
            "PERSISTENCE_MODULE": MODULE,
            "LEFTFOLD_STORE": str(self.store.path),
            "COUNTERS_LEFTFOLD_STORE": str(self.folder / "counters"),
        }
