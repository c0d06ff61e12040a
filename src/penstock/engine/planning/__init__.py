"""What a run will make, and what became of slices before: pure, from models and records."""
