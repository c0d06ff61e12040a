"""The annotation header: one small function a keyword."""
