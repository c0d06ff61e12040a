"""Catalogs copied as a whole, each kind of database in its own way."""
