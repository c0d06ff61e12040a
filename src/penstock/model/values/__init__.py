"""What a model names and is: assets, kinds, tests, history; values without a query."""
