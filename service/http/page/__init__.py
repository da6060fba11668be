"""The page at `/` and the documentation at `/docs`: their files, and how these are served."""
