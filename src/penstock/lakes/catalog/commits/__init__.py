"""One commit: its start, its rows, its conflicts and retries."""
