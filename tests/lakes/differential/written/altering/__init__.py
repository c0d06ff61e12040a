"""Random transactions that alter tables and choose rows of them."""
