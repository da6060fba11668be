"""How an upload gets into memory or into the work file, for each kind of reader that the format table names."""
