"""Values of a model: assets, kinds, tests, history; values without a query."""
