import pytest

from infrastructure.jsonl.store import Store


@pytest.fixture
def stores(tmp_path):
    """Make stores on one folder, as several programs would."""
    made = []

    def make(*, durable=False):
        made.append(Store(tmp_path / "store", durable=durable))
        return made[-1]

    yield make
    for store in made:
        store.close()


@pytest.fixture
def store(stores):
    return stores()
