"""The settings of a project, from penstock.toml, the environment and the command line."""
