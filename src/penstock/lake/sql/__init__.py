"""What the text of a query says: names, places, macros; nothing is looked up yet."""
