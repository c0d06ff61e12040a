"""A project of dbt's, read from its manifest, as files of a project of Penstock's."""
