"""What is believed of bytes that are in memory, for tests."""

from infrastructure.jsonl.reader import Reader


def scan(data, **known):
    """Return what is believed of *data*; *known* is what a `Reader` is told before it reads."""
    reader = Reader(**known)
    reader.feed(data)
    return reader.finish()
