"""Events in plain files, one log a conversation: ``PERSISTENCE_MODULE=infrastructure.jsonl``."""

from infrastructure.jsonl.factory import JSONLFactory

__all__ = ["JSONLFactory"]
