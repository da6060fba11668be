"""What the endpoints share: the rows that describe them, their inputs, authentication and rendering."""
