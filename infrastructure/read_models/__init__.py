"""Read models: tables that are made from the logs, and may be thrown away at any time."""
