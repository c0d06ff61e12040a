"""What is known about runs and slices, in the lake's own catalog."""
