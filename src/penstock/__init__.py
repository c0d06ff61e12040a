"""Penstock: managed data pipelines on Spark. The public names."""
