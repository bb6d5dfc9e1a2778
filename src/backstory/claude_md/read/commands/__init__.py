"""The commands of a project, from what its own files say: CI, documentation, task runners, manifests."""
