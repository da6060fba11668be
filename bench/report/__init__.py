"""What is made of the figures: goals, tables, plots, the report."""
