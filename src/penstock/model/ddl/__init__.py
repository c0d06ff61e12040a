"""``MODEL (...)``: its properties in a table, one small function each."""
