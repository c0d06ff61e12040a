"""What every part of the catalog stands on: the databases, their errors and the metadata tables."""
