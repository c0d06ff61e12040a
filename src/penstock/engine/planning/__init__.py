"""Plan what a run will make, from the states of slices: pure, from models and records."""
