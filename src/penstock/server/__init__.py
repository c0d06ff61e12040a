"""Serve a project: watch its inputs, record decisions, run firings, and answer HTTP."""
