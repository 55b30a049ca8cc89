"""Turns that nobody watches at a terminal: `-p`, and programs that drive a conversation."""
