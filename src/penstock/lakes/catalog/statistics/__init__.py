"""Statistics of tables and files, and the files that a condition prunes."""
