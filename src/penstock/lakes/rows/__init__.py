"""One engine of row changes: DELETE, UPDATE, MERGE, merge by key, replacing where."""
