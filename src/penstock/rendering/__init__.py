"""Answers as text, as HTML and as JSON, for terminals, notebooks, pages and programs."""
