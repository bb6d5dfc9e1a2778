"""What turns tell without a model: facts of their structure, and no reading of anybody's sentences."""
