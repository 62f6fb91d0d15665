"""Benchmarks: `make bench`.  Medians and ratios against the aims; nothing here asserts a time."""
