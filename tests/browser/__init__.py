"""The web page in a browser, in front of real processes."""
