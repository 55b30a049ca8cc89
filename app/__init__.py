"""What a person can do: the loop, the command line, the REPL."""

PROGRAM, VERSION = "leftfold", "0.1.0"
