"""Check a project and test its models, without writing a table."""
