"""Hints of messages, followed: what one says to write has not the fault that it is for."""
