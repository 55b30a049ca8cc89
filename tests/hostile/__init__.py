"""What an attacker may bring: stores, logs, projects. docs/trust.md says which test holds what."""
