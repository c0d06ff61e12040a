"""Tables of a Delta root as a destination: a lake's tables whose commits go to Delta's logs."""
