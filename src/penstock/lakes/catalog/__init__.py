"""The catalog: the only code that issues metadata SQL."""
