"""Column lineage: which columns of which assets each column of a model derives from."""
