"""Steps in Python: what they need, read and write, found by `ast`."""
