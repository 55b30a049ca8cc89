"""After-hooks: commands of the user's that are run for events of the log, once they are in it."""
