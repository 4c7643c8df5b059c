"""Where the concepts run: a small real decoder, its cache, its bytes. NumPy is imported where it is used."""
