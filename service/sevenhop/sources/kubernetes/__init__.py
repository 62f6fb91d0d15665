"""One cluster's API server as a source: what it serves, listed and watched, told as events."""
