"""What the manifests in one folder say, a module for each ecosystem. Nothing in them is ever run."""
