"""Facts: catalogue, model types, class defaults, schemas. Read with ``importlib.resources``."""
