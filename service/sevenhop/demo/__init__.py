"""The demo: a story on a simulated cluster, told by the parts that run in production."""
