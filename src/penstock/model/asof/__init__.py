"""ASOF JOIN: its forms, where it stands in a query, and its two plans."""
