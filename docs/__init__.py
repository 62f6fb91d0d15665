"""The documentation: pages written by hand, and `docs.render`, which writes docs/reference from the code."""
