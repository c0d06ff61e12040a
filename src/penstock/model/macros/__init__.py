"""``@`` macros, macros in Python, libraries of macros, and a script's own."""
