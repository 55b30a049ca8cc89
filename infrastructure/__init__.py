"""Where events are kept, who answers, and what acts on the machine."""
