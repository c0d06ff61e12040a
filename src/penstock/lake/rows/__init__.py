"""DELETE and UPDATE: which rows they touch, where these lie, what stands in their place."""
