"""One module per command: parse nothing, print through the console."""
