"""Moments, intervals and partitions: how time divides a model into slices."""
