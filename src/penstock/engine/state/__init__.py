"""Records of runs and slices, in the lake's own catalog."""
