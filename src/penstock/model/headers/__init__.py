"""The two forms of a header, lines and ``MODEL (...)``: how each is read and written."""
