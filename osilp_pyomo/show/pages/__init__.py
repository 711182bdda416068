"""Pages of HTML in one file, without a server or a network."""
