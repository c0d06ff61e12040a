"""Answer questions on models, slices and tables: status, previews, lineage."""
