"""`sevenhop demo --kill N`: the service as a process of its own, killed again and again while it works."""
