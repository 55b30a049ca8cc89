"""Histories of other programs: files in, what they tell out (`domain.foreign.Told`)."""
