"""What is not computed here, and how that is told."""

from __future__ import annotations


class NotHere(Exception):
    """This is left to Spark, which computes it or says what is wrong."""
