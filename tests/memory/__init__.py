"""Runs in a container's memory, by hand: ``make memory-tests``."""
