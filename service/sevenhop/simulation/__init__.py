"""A small cluster in memory that speaks the Kubernetes API over loopback HTTP: for the demo and for fault tests."""
