"""Parts of the service measured on their own."""
