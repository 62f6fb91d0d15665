"""One module for each page of docs/reference that no other module renders; each has `render() -> str`."""
