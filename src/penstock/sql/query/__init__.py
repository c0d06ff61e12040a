"""One reading of a query: its structure over the words of its text, and edits of that text."""
