"""The web page: what it shows, as JSON, and the page itself."""
