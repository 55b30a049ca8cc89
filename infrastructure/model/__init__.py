"""The model client and the offline model."""
