"""What the endpoints share: the rows that describe them, their inputs, who calls, and how results are rendered."""
