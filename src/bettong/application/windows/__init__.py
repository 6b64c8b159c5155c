"""Windows, as an application describes them: which messages of a key belong together, and their aggregation."""
