"""A script's statements, arguments and sources, before anything is expanded or rendered."""
