"""What a model is; no Spark here."""
