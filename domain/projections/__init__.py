"""Pure functions from a path of entries to something a person or a model sees."""
