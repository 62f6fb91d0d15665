"""The service's HTTP door: health, and whatever routes the other parts bring."""
