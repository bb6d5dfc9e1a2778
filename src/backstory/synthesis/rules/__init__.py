"""What the records of turns tell without a model."""
