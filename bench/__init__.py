"""Benchmarks against peers. ``python -m bench`` runs all; each module also runs on its own."""
