"""The scripts of a project into models, and models written as scripts again."""
