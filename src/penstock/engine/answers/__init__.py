"""What is asked of models, slices and tables: status, previews, lineage."""
