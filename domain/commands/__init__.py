"""What may be said to a conversation, by subject; `domain.conversation` is made of it."""
