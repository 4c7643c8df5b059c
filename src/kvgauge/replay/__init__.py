"""Recorded measurements against the code that the commands use: records, predictions, the table of errors."""
