"""Makes models true."""
