"""Penstock: managed data pipelines on Spark. The public names."""

from penstock.lake.lake import Lake

__all__ = ["Lake"]
