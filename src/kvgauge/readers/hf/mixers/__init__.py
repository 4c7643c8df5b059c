"""One module a mechanism: config words of one layer -> its layer caches."""
