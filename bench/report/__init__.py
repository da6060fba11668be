"""Reports on the figures: goals and tables."""
