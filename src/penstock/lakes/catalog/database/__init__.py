"""The base of every part of the catalog: the databases, their errors and the metadata tables."""
