"""What a person can do: the loop, the command line, the REPL."""
