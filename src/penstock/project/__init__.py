"""A project: its models, and what can be done with them."""
