"""A model as a whole, among others: built, embedded, ordered."""
