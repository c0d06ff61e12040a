"""Runs: steps from their start to their records, and what changes a table besides a run."""
