"""What a conversation is and what can be seen in it. Pure: no file, no clock, no terminal."""
